#pragma once

#include <cstdint>
#include <string>

#include "models/layers/layer_tape.h"

namespace orrery {

// DataParallel's outputs come together on rank 0, which alone knows the loss and hands its gradient back.
void gathered_cross_entropy(LayerTape& layer, Id logits, std::int64_t columns);
// The loss of logits, with its gradient. replicas > 0: the logits are those of so many data ranks, one after the other.
void cross_entropy(LayerTape& layer, Id logits, std::int64_t columns, std::int64_t replicas = 0);

}  // namespace orrery
