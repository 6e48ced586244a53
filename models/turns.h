#pragma once

#include <cstdint>
#include <vector>

#include "models/schedules.h"

namespace orrery {

// A point-to-point transfer seen from one stage: a forward activation or backward gradient crosses the boundary after
// virtual stage `boundary` (between boundary and boundary + 1). Or all that a micro-batch has left on a stage, on its
// way to another (`forward`) or back.
struct Crossing {
  std::int32_t boundary = 0;
  std::int32_t micro_batch = 0;
  bool forward = true;
  bool send = true;
  bool joins_previous = false;  // forms one batch with the one before it
  std::int32_t move = -1;       // which of the schedule's, or -1
};

// What a stage sends and receives just before its action number i (turns[stage][i]); the last entry follows the last
// action.
using Turns = std::vector<std::vector<std::vector<Crossing>>>;

// Where in its order each stage sends and receives. Actions are replayed in logical time (B 2, F, I and W 1;
// transfers take none): a transfer belongs to the time at which it is produced, and every stage issues its transfers in
// that order, a receive perhaps well before the action that uses it (stage 0 of an interleaved pipeline takes what the
// last stage sends round). Transfers of one stage at one time form a batch. Along every queue time grows, so merging
// all transfers of a rank into one queue cannot deadlock. Throws Error when the order of the schedule itself does.
Turns order_transfers(const Schedule& schedule);

}  // namespace orrery
