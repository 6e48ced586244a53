#pragma once

#include <cstdint>
#include <string>

#include "models/layers/layer_tape.h"

namespace orrery {

// The loss of DataParallel: outputs are gathered on rank 0, which alone computes the loss and scatters its gradient.
void gathered_cross_entropy(LayerTape& layer, Id logits, std::int64_t columns);
// The loss of logits, with its gradient. replicas > 0: number of data ranks whose logits these are, one rank after the
// other.
void cross_entropy(LayerTape& layer, Id logits, std::int64_t columns, std::int64_t replicas = 0);

}  // namespace orrery
