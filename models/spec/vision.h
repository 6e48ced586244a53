#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/spec.h"

namespace orrery {

// Returns the number of tokens of a sample that stand for its images; 0 without images.
std::int64_t image_tokens(const Spec& spec);

// Returns a spec that describes the vision encoder as if it were the model: the encoder's layers are the model, the
// patches of one image are the sequence, and all images of a micro-batch are the micro-batch. Tensor parallelism cuts
// heads and MLPs but not the sequence (LLaVA in Megatron-Core: the sequence is cut only after text and images are
// joined). spec.images must be set.
Spec encoder_spec(const Spec& spec);

// Returns a message why the encoder's heads, MLPs and projectors cannot be cut evenly over `tensor` ranks; "" if they
// can.
std::string broken_encoder_cut(const VisionEncoder& v, std::int64_t tensor);

// Returns the parameters of the vision encoder: patches, positions, layers and projectors; none without an encoder.
std::vector<Parameter> vision_parameters(const Model& m);
std::int64_t vision_parameter_count(const Model& m);

// Returns the number of multiplications in the forward pass of the vision encoder and its projectors, for the images of
// one sample.
double encoder_products(const Spec& spec);

// Returns the FLOP of the matrix products of the vision encoder and its projectors in one step (see model_flops): in
// forward and, for weights that train, in backward. Attention counts the pairs of patches that attend to each other.
double vision_flops(const Spec& spec);

// Returns whether any weight of the vision encoder or of its projectors trains (is not frozen).
bool vision_trains(const Model& m);

}  // namespace orrery
