#include "models/planner/post_validation.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "models/planner/gradient_ops.h"
#include "models/planner/shared_gradients.h"

namespace orrery {
namespace {

// Returns a key that identifies one side, the send or the receive, of a transfer between two stages.
std::tuple<std::int32_t, std::int32_t, bool, bool> end_of(const StageTransfer& c, bool send) {
  return {c.boundary, c.micro_batch, c.forward, send};
}

bool is_shared(const StageTransfer& c) { return c.move >= 0 || c.exchange != StageExchange::none; }

// Returns the position of a stage's first backward in its order of transfers. If a forward is overlapped with this
// backward, the position is that of the forward, since nothing can come between overlapped actions.
TransferPlace first_backward(const std::vector<Action>& order,
                             const std::vector<std::vector<StageTransfer>>& transfer_order) {
  std::size_t i = 0;
  while (i < order.size() && order[i].phase == Phase::forward) ++i;
  while (i > 0 && order[i - 1].woven) --i;
  return {i, transfer_order[i].size()};
}

// Calls f, until it returns false, with every transfer before the position `end` and with the transfer's position.
template <class F>
void for_transfers(const std::vector<std::vector<StageTransfer>>& transfer_order, TransferPlace end, const F& f) {
  for (std::size_t t = 0; t <= end.turn; ++t) {
    const std::size_t count = t < end.turn ? transfer_order[t].size() : end.transfer;
    for (std::size_t c = 0; c < count; ++c) {
      if (!f(transfer_order[t][c], TransferPlace{t, c})) return;
    }
  }
}

}  // namespace

std::vector<TransferPlace> validation_places(const Schedule& schedule, const TransferOrder& transfer_order) {
  std::vector<TransferPlace> places;
  for (std::size_t s = 0; s < transfer_order.size(); ++s)
    places.push_back(first_backward(schedule.order[s], transfer_order[s]));
  for (bool shrinks = true; shrinks;) {
    std::set<std::tuple<std::int32_t, std::int32_t, bool, bool>> before;
    for (std::size_t s = 0; s < transfer_order.size(); ++s) {
      for_transfers(transfer_order[s], places[s],
                    [&](const StageTransfer& c, TransferPlace) { return before.insert(end_of(c, c.send)).second; });
    }
    shrinks = false;
    for (std::size_t s = 0; s < transfer_order.size(); ++s) {
      for_transfers(transfer_order[s], places[s], [&](const StageTransfer& c, TransferPlace at) {
        const bool fits = !is_shared(c) && before.contains(end_of(c, !c.send));
        if (fits) return true;
        places[s] = at;
        shrinks = true;
        return false;
      });
    }
  }
  return places;
}

PostValidation::PostValidation(Draft& draft, TaskWriter& writer)
    : StepPart(draft, writer), places_(validation_places(schedule_, draft_.transfer_order)) {
  for (std::size_t s = 0; s < draft_.transfer_order.size(); ++s) {
    const auto [turn, transfer] = places_[s];
    if (transfer < draft_.transfer_order[s][turn].size())
      draft_.transfer_order[s][turn][transfer].joins_previous = false;
  }
}

void PostValidation::before_transfer(std::size_t turn, std::size_t transfer) {
  if (places_[draft_.at.stage] == TransferPlace{turn, transfer}) validate_update();
}

void PostValidation::after_turn(std::size_t turn) {
  const std::vector<std::vector<StageTransfer>>& transfer_order = draft_.transfer_order[draft_.at.stage];
  const auto moves = [](const auto& transfers) { return !transfers.empty(); };
  const auto behind = transfer_order.begin() + static_cast<std::ptrdiff_t>(turn) + 1;
  if (!shares_table(draft_) && !transfer_order[turn].empty() && std::none_of(behind, transfer_order.end(), moves))
    receive_partial_norm();
}

// Writes the send, or the receive (send = false), of one number of the rank, such as the gradient norm. `of` is the
// number's index among the rank's own buffers. The number goes from each stage to the next one (forward) or to the
// previous one.
TaskId PostValidation::pass_number(const char* name, std::uint16_t of, bool send, bool forward) {
  const bool next = send == forward;  // whether the other side of the transfer is the next stage
  const LaneKind lane = send ? (next ? LaneKind::send_next : LaneKind::send_previous)
                             : (next ? LaneKind::receive_next : LaneKind::receive_previous);
  const Op op = {.name = name,
                 .work = Transfer{.send = send, .offset = next ? 1 : -1, .bytes = 4, .parts = parts_sent(spec_, false)},
                 .phase = Phase::step,
                 .lane = lane,
                 .operands = {number(of, send ? Access::read : Access::write)}};
  const TaskId task = writer_.emit(op, chunks_.front().state);
  const auto boundary = static_cast<std::int32_t>(next ? draft_.at.stage : draft_.at.stage - 1);
  writer_.ends().transfers.push_back({{boundary, -1, forward, draft_.at.rank_kind, 0}, task});
  return task;
}

// Receives the norm of the previous stages, which this stage's update uses. The receive is issued after the stage's
// last other transfer, well before the norm is needed, so that the sender does not wait. If the first and the last
// stage share an embedding table, the receive is issued after the sum of the table's gradients, for which the first
// stage's norm waits.
void PostValidation::receive_partial_norm() {
  if (draft_.at.stage > 0) pass_number("receive partial norm", kNormBefore, false, true);
}

std::vector<TaskId> PostValidation::pass_partial_norm(const std::vector<TaskId>& summed) {
  if (shares_table(draft_)) receive_partial_norm();
  if (draft_.at.stage > 0) {
    const Op op = {.name = "add partial norm",
                   .work = Accumulate{1, 4, 4},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {number(kNormBefore, Access::read), number(partial_norm(), Access::read_write)}};
    writer_.emit(op, chunks_.front().state, summed);
  }
  if (!draft_.at_last_stage()) pass_number("send partial norm", partial_norm(), true, true);
  return draft_.at.stage > 0 ? std::vector{writer_.last_of(LaneKind::compute)} : summed;
}

// Validates the last update: the norm of all stages is passed back from the last stage, and the host waits for it
// before gradients of this step replace those of the update.
void PostValidation::validate_update() {
  plan_.classes.back().validation = static_cast<TaskId>(plan_.tasks.size());
  if (!draft_.at_last_stage()) pass_number("receive whole norm", kWholeNorm, false, false);
  if (draft_.at.stage > 0) pass_number("send whole norm", whole_norm(), true, false);
  plan_.classes.back().validated = static_cast<TaskId>(plan_.tasks.size());
  const Op wait = {.name = "validate update",
                   .work = Wait{},
                   .phase = Phase::step,
                   .host_waits = true,
                   .operands = {number(whole_norm(), Access::read)}};
  writer_.emit(wait, chunks_.front().state);
  for (const Chunk& chunk : chunks_) zero_gradients(draft_, writer_, chunk, {});
}

}  // namespace orrery
