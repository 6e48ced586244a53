#pragma once

#include "models/plan/plan.h"

namespace orrery {

// The caching allocator's pool from which a lane's tasks allocate: FSDP gathers and reduces on streams with pools of
// their own. Other transfers use the compute stream's pool, which waits for collectives; a sent buffer is freed when
// the message has arrived.
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
