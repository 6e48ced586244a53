#pragma once

#include "models/plan/plan.h"

namespace orrery {

// The allocator's pool that what a lane's tasks take comes from: FSDP gathers and reduces on streams with pools of
// their own. Other transfers use the compute stream's, which waits for collectives; what is sent comes back when it has
// arrived.
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
