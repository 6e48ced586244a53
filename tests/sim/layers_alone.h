#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "sim/engine/timing.h"

namespace orrery {

// The first op of a layer's forward, of its backward and, where those run apart, of its weight gradients take all its
// time; everything else is free.
inline Timing layers_alone(const Plan& plan, Picoseconds forward, Picoseconds backward, Picoseconds weight = 0) {
  Timing timing;
  timing.row_of_slot.assign(plan.classes.size(), 0);
  timing.rows.assign(1, std::vector<OpTiming>(plan.ops.size()));
  for (const Block& block : plan.blocks) {
    if (block.role != BlockRole::layer) continue;
    timing.rows[0][block.forward.front()].duration = forward;
    timing.rows[0][block.backward.front()].duration = backward;
    if (block.input_gradients < block.backward.size())
      timing.rows[0][block.backward[block.input_gradients]].duration = weight;
  }
  return timing;
}

}  // namespace orrery
