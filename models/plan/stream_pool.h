#pragma once

#include "models/plan/plan.h"

namespace orrery {

// Returns the number of the caching allocator's pool from which a lane's tasks allocate: FSDP gathers and reduces on
// CUDA streams with pools of their own. Other transfers allocate from the pool of the compute stream, which waits for
// collectives; a sent buffer is freed when the message has arrived.
inline int pool_of(LaneKind lane) {
  switch (lane) {
    case LaneKind::data_gather:
      return 1;
    case LaneKind::data_reduce:
    case LaneKind::expert_reduce:
      return 2;
    case LaneKind::replicate:
      return 3;
    default:
      return 0;
  }
}

}  // namespace orrery
