#pragma once

#include <cstdint>
#include <vector>

#include "models/schedules.h"

namespace orrery {

// A point-to-point transfer seen from one stage: its forward activation or backward gradient crosses the boundary after
// virtual stage `boundary` (between boundary and boundary + 1).
struct Crossing {
  std::int32_t boundary = 0;
  std::int32_t micro_batch = 0;
  bool forward = true;
  bool send = true;
  bool joins_previous = false;  // forms one batch with the hop before it
};

// What a stage sends and receives just before its action number i (turns[stage][i]); the last entry follows the last
// action.
using Turns = std::vector<std::vector<std::vector<Crossing>>>;

// Orders the sends of an action and the receives of the next one, and batches those that must travel together. Actions
// are replayed in logical time (F 1, B 2; transfers take none and start when both ends have come to them): earlier
// transfers are issued first, equal ones form one batch. Time grows along every rank's queue, so merging all of a rank's
// transfers into one queue in this order cannot deadlock. Throws Error when the order of the schedule itself deadlocks.
Turns order_transfers(const Schedule& schedule);

}  // namespace orrery
