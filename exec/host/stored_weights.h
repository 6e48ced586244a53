#pragma once

#include <vector>

#include "kernels/cpu/weight_codes.h"
#include "models/plan/plan.h"

namespace orrery {

// The conversions between a weight's format of few bits (strategy.quantise) and floats.

// Returns the shape and format of a rank's part of a weight.
kernels::CodedMatrix coded_matrix(const LocalParameter& p);
kernels::WeightCodes codes_of(WeightCode code);
// Returns a weight as floats, from the bytes in which it is stored.
std::vector<float> widened_weight(const LocalParameter& p, const std::byte* stored);

}  // namespace orrery
