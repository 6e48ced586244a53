#pragma once

#include <cstdint>
#include <string>

#include "models/layers/layer_tape.h"

namespace orrery {

// Records the loss of torch's DataParallel: outputs are gathered on rank 0, which alone computes the loss and scatters
// its gradient.
void gathered_cross_entropy(LayerTape& layer, Id logits, std::int64_t columns);
// Records the loss of logits and the loss's gradient. If replicas > 0, the logits are those of that many data-parallel
// ranks, one rank's after the other's.
void cross_entropy(LayerTape& layer, Id logits, std::int64_t columns, std::int64_t replicas = 0);

}  // namespace orrery
