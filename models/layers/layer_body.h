#pragma once

#include <cstdint>

#include "models/layers/layer_tape.h"

namespace orrery {

// Records the ops of layer number `layer` from its input x to its output: attention or a recurrence, and an MLP or
// experts, each as a branch of the residual stream or of the streams of hyper-connections.
Id layer_body(LayerTape& b, const BlockContext& c, std::int64_t layer, Id x);

}  // namespace orrery
