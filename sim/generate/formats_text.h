#pragma once

#include <string>

#include "models/spec/spec.h"

namespace orrery {

// Returns the bits that a weight of the layers' quantised matrices takes on average, scales and outliers included;
// those of the activations where weights are as wide.
double bits_of_weights(const Spec& spec);
// The format of weights and of the inputs of their products in words; "" if weights are as wide as activations: "int4,
// a scale for 128 weights: 4.13 bits a weight of the layers; products widen them to bf16".
std::string formats_text(const Spec& spec);

}  // namespace orrery
