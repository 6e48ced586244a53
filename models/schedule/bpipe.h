#pragma once

#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Returns the moves of activations between stages that BPipe makes (Kim et al. 2023, ICML, section 3) for the 1F1B
// orders of p stages. Under 1F1B stage i keeps the activations of p - i micro-batches, so stage i of the first half
// sends some of them to stage p - 1 - i, and no stage keeps more than (p + 2) / 2 micro-batches, rounded up. A stage
// that has reached this limit after a forward evicts the micro-batch whose backward is the farthest away; it gets a
// micro-batch back while it runs the action before that micro-batch's backward.
std::vector<Eviction> balance_activations(const std::vector<std::vector<Action>>& orders);

}  // namespace orrery
