#pragma once

#include <cstdint>
#include <vector>

#include "models/schedule/schedules.h"

namespace orrery {

// Exchanges that all stages take part in where they share the vocabulary: token embeddings come together and their
// gradients go round, hidden states go round and their gradients come together, and the loss's sums are shared.
enum class StageExchange : std::int8_t {
  none = -1,
  token_embeddings,
  hidden_states,
  sums,
  hidden_gradients,
  embedding_gradients
};

// A point-to-point transfer seen from one stage: a forward activation or backward gradient crosses the boundary after
// virtual stage `boundary` (between boundary and boundary + 1). With `move`: all activations that a micro-batch has
// left on a stage, on their way to another stage (`forward`) or back.
struct StageTransfer {
  std::int32_t boundary = 0;
  std::int32_t micro_batch = 0;
  bool forward = true;
  bool send = true;
  bool joins_previous = false;  // the transfer forms one batch with the one before it
  std::int32_t move = -1;       // number of the schedule's activation move, or -1
  StageExchange exchange = StageExchange::none;
};

// The transfers that a stage issues just before its action number i (transfer_order[stage][i]); the last entry follows
// the last action.
using TransferOrder = std::vector<std::vector<std::vector<StageTransfer>>>;

// The places in a stage's order at which it sends and receives. Actions are replayed in logical time (B 2, F, I and W
// 1; transfers take none): a transfer belongs to the time at which it is produced, and every stage issues its transfers
// in that order, a receive perhaps well before the action that uses it (stage 0 of an interleaved pipeline takes what
// the last stage sends round). An exchange of all stages belongs, on every stage, to the time at which the last of them
// has given its part. Transfers of one stage at one time form a batch. Along every queue time grows, so merging all
// transfers of a rank into one queue cannot deadlock. Throws Error when the order of the schedule itself does. times:
// those of the virtual stages, and behind them those of a shared vocabulary's parts, as in ScheduleShape; actions then
// take these. An exchange of all stages is issued where it will be made, and holds up no action that could run before.
TransferOrder order_transfers(const Schedule& schedule, const std::vector<PhaseTimes>& times = {});

}  // namespace orrery
