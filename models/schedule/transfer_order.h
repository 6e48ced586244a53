#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Collective exchanges of all pipeline stages if they share the vocabulary: token embeddings are summed and their
// gradients broadcast, hidden states are broadcast and their gradients summed, and the sums of the loss are
// all-reduced.
enum class StageExchange : std::int8_t {
  none = -1,
  token_embeddings,
  hidden_states,
  sums,
  hidden_gradients,
  embedding_gradients
};

// A point-to-point transfer seen from one stage: a forward activation or backward gradient crosses the boundary after
// virtual stage `boundary` (between boundary and boundary + 1). With `move`: all activations of a micro-batch that are
// sent from a stage to another stage for keeping (`forward`) or back (BPipe).
struct StageTransfer {
  std::int32_t boundary = 0;
  std::int32_t micro_batch = 0;
  bool forward = true;
  bool send = true;
  bool joins_previous = false;  // the transfer forms one batch with the one before it
  std::int32_t move = -1;       // number of the schedule's eviction (Schedule::moves), or -1
  StageExchange exchange = StageExchange::none;
};

// The transfers that a stage issues just before its action number i (transfer_order[stage][i]); the last entry follows
// the last action.
using TransferOrder = std::vector<std::vector<std::vector<StageTransfer>>>;

// The points in a stage's order at which it sends and receives. Actions are replayed in logical time (B 2, F, I and W
// 1; transfers take none): a transfer gets the time at which its data is produced, and every stage issues its transfers
// in the order of these times, a receive perhaps well before the action that uses it (stage 0 of an interleaved
// pipeline receives what the last stage sends back to it). An exchange among all stages gets, on every stage, the time
// at which the last of them has its data. Transfers of one stage at one time form a batch. Times increase along every
// queue, so merging all transfers of a rank into one queue cannot deadlock. Throws Error when the order of the schedule
// itself deadlocks. times: times of the virtual stages, then those of a shared vocabulary's parts, as in ScheduleShape;
// they replace the logical times. An exchange among all stages is issued where it can complete, and delays no action
// that could run before it.
TransferOrder order_transfers(const Schedule& schedule, const std::vector<PhaseTimes>& times = {});

}  // namespace orrery
