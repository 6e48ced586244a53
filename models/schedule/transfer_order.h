#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// The collective exchanges among all pipeline stages if they share the vocabulary: token embeddings are summed and
// their gradients broadcast, hidden states are broadcast and their gradients summed, and the sums of the loss are
// all-reduced.
enum class StageExchange : std::int8_t {
  none = -1,
  token_embeddings,
  hidden_states,
  sums,
  hidden_gradients,
  embedding_gradients
};

// A point-to-point transfer as seen from one stage: an activation of forward or a gradient of backward crosses the
// boundary between virtual stages `boundary` and boundary + 1. If `move` is not -1, the transfer is all activations of
// a micro-batch that a stage sends to another stage to keep (`forward`) or gets back (BPipe).
struct StageTransfer {
  std::int32_t boundary = 0;
  std::int32_t micro_batch = 0;
  bool forward = true;
  bool send = true;
  bool joins_previous = false;  // whether the transfer is in one batch with the previous transfer
  std::int32_t move = -1;       // for moved activations (BPipe): index of the move in Schedule::moves; else -1
  StageExchange exchange = StageExchange::none;
};

// The transfers of every stage: [stage][i] lists the transfers that the stage issues just before its action number i;
// the last entry of a stage lists the transfers after its last action.
using TransferOrder = std::vector<std::vector<std::vector<StageTransfer>>>;

// Determines the points in each stage's order at which it sends and receives. Actions are replayed in logical time (B
// takes 2, F, I and W take 1; transfers take none). A transfer gets the time at which its data is produced, and every
// stage issues its transfers in the order of these times. So a receive may come well before the action that uses its
// data (stage 0 of an interleaved pipeline receives what the last stage sends back to it). An exchange among all stages
// gets, on every stage, the time at which the last stage has its data. The transfers of one stage at the same time form
// a batch. Times increase along every queue, so merging all transfers of a rank into one queue cannot deadlock. Throws
// Error if the order of the schedule itself deadlocks. times: times of the virtual stages, then those of the parts of a
// shared vocabulary, as in ScheduleShape; they replace the logical times. An exchange among all stages is issued when
// it can complete, and delays no action that could run before it.
TransferOrder order_transfers(const Schedule& schedule, const std::vector<PhaseTimes>& times = {});

}  // namespace orrery
