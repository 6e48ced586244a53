// PlanBuilder: tasks of one slot in the order in which its host issues them.
#include <algorithm>

#include "models/layout/arena.h"
#include "models/planner/plan_builder.h"

namespace orrery {

void PlanBuilder::issued(const Op& op, std::uint32_t frame, TaskId task) {
  for (const Operand& operand : op.frees) {
    if (operand.scope != Scope::unit || operand.slot != kGathered) continue;
    gathered_[frame_of(plan_, frame, operand)] = false;
    released_.push_back(task);
  }
  if (!schedule_.moves.empty()) note_alive(op, frame);
}

// Issues an exchange of a vocabulary that all stages share. Sums of token embeddings, hidden states and the gradients
// of both have blocks of their own; a loss's sums are in the block of its logits.
void PlanBuilder::emit_exchange(const Crossing& crossing) {
  const StageExchange what = crossing.exchange;
  const bool input = what == StageExchange::words || what == StageExchange::word_gradients;
  const Chunk& chunk = chunks_[input ? schedule_.input_chunk : schedule_.output_chunk];
  const std::size_t e = input || what == StageExchange::sums ? chunk.entries.size() - 1 : 0;
  const Block& block = plan_.blocks[chunk.entries[e].block];
  const bool back = what == StageExchange::word_gradients || what == StageExchange::hidden_gradients;
  const std::uint32_t frame = chunk.frames[crossing.micro_batch * chunk.entries.size() + e];
  for (const std::uint32_t op : what == StageExchange::sums ? block.exchange : back ? block.backward : block.forward)
    writer_.emit(op, frame);
}

void PlanBuilder::emit_any(const Crossing& crossing) {
  if (crossing.move >= 0) return emit_move(crossing);
  if (crossing.exchange != StageExchange::none) return emit_exchange(crossing);
  emit_crossing(crossing);
}

void PlanBuilder::emit_turn(std::size_t turn) {
  const std::vector<std::vector<Crossing>>& turns = draft_.turns[draft_.at.stage];
  writer_.forget_sends();
  for (std::size_t c = 0; c <= turns[turn].size(); ++c) {
    if (facts_.validates && validation_places_[draft_.at.stage] == TurnPlace{turn, c}) validate_update();
    if (c < turns[turn].size()) emit_any(turns[turn][c]);
  }
  const auto moves = [](const auto& crossings) { return !crossings.empty(); };
  if (facts_.validates && !shares_table() && !turns[turn].empty() &&
      std::none_of(turns.begin() + turn + 1, turns.end(), moves))
    receive_partial_norm();
}

// Issues one transfer for each slice. Where stages have several ranks, the transfers of a crossing follow each other on
// both sides in the order of their samples, and none joins another's batch.
void PlanBuilder::emit_crossing(const Crossing& crossing) {
  const bool upstream = crossing.forward == crossing.send;  // this is the end before the boundary
  const std::int32_t virtual_stage = crossing.boundary + (upstream ? 0 : 1);
  const Chunk& chunk = chunks_[schedule_.chunk_of[virtual_stage]];
  const std::size_t entry = upstream ? chunk.entries.size() - 1 : 0;
  const std::uint32_t frame = chunk.frames[crossing.micro_batch * chunk.entries.size() + entry];
  const Block& block = plan_.blocks[chunk.entries[entry].block];
  const bool joins = crossing.joins_previous && spec_.software.batched_p2p && spec_.strategy.stage_replicas.empty();
  const std::int64_t parts = spec_.strategy.row_parts();
  const Bytes before =
      (draft_.at.replica * parts + draft_.row_part()) * context_.local_rows * context_.hidden * context_.width;
  for (const std::uint32_t op : crossing.forward ? block.forward : block.backward) {
    const auto* transfer = std::get_if<Transfer>(&plan_.ops[op].work);
    if (transfer == nullptr) continue;
    const Bytes first = before + transfer->first;
    const TaskId task = writer_.emit(op, frame, {}, joins ? kJoinsPrevious : std::uint8_t{0});
    ends_
        .crossings[{crossing.boundary, crossing.micro_batch, crossing.forward, parts > 1 ? 0 : draft_.at.rank_class,
                    first}]
        .push_back(task);
    if (crossing.send) writer_.hold_send(task);
  }
}

PlanBuilder::Pass PlanBuilder::begin(const Action& action) const {
  Pass pass = {action, {}};
  const std::vector<Entry>& entries = chunks_[action.chunk].entries;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (!entries[e].transfer) pass.entries.push_back(e);
  }
  if (action.phase != Phase::forward) std::reverse(pass.entries.begin(), pass.entries.end());
  return pass;
}

// Issues the next op of a pass: before an entry's first op also the gathers and casts of its weights, after its last op
// the reductions of its gradients.
bool PlanBuilder::issue_next(Pass& pass) {
  const Action& action = pass.action;
  Chunk& chunk = chunks_[action.chunk];
  const std::size_t e = pass.entries[pass.at];
  const Entry& entry = chunk.entries[e];
  const bool forward = action.phase == Phase::forward, weights = action.phase == Phase::weight_gradient;
  const std::size_t split = plan_.blocks[entry.block].input_gradients;
  if (!pass.begun) {
    if (!forward) release_activations();
    if (row_.shards_parameters && !weights) gather_for(action, pass.at, pass.entries);
    if (!forward && !weights) fetch_activations(pass);
    if (forward) gather_ahead(entry.unit);
    if (forward && action.micro_batch == chunk.first_micro_batch) cast_weights(chunk, entry);
    pass.op = weights ? split : forward ? 0 : plan_.blocks[entry.block].fetches;
    pass.begun = true;
  }
  const Block& block = plan_.blocks[entry.block];
  const std::vector<std::uint32_t>& ops = forward ? block.forward : block.backward;
  const std::size_t end = action.phase == Phase::input_gradient ? split : ops.size();
  bool moved = false;
  const std::uint32_t frame = chunk.frames[action.micro_batch * chunk.entries.size() + e];
  const bool adds_late = spec_.software.accumulates_after_backward && !forward && !facts_.unit_gradients &&
                         action.micro_batch != chunk.last_micro_batch && !ends_update(action);
  if (pass.op < end && adds_late && std::holds_alternative<Accumulate>(plan_.ops[ops[pass.op]].work)) {
    pass.late.push_back({ops[pass.op++], frame, e});
  } else if (pass.op < end) {
    const bool tiles = row_.shards_parameters && spec_.strategy.offload.tiling > 1;
    if (tiles)
      gather_tiles(frame, std::span(ops).first(end).subspan(pass.op), forward ? Phase::forward : Phase::backward);
    const std::uint32_t op = ops[pass.op++];
    const TaskId task = writer_.emit_behind_held(op, frame);
    if (!forward) after_backward_op(chunk, e, plan_.ops[op], task);
    if (!forward && tiles) reduce_tiles(chunk, frame, op);
    moved = moves(plan_.ops[op]);
  }
  if (pass.op < end) return moved;
  const bool ends_backward = action.phase == Phase::backward || weights;
  if (ends_backward && facts_.unit_gradients && reduces_apart(entry))
    reduce_unit(entry.owns ? chunk : draft_.table_chunk(), entry.unit);
  if (forward) {
    release_activations();
    if (!block.release.empty()) leaving_ = chunk.frames[action.micro_batch * chunk.entries.size() + e];
  }
  ++pass.at;
  pass.begun = false;
  if (pass.done()) {
    for (const Late& late : pass.late)
      after_backward_op(chunk, late.entry, plan_.ops[late.op], writer_.emit(late.op, late.frame));
  }
  return moved;
}

// Casts weights that stay to fp8 once a step, before their first use, with the transposed copy that backward reads
// (Transformer Engine: is_first_microbatch).
void PlanBuilder::cast_weights(const Chunk& chunk, const Entry& entry) {
  const std::int64_t elements = eight_bit_elements(spec_, plan_.blocks[entry.block]);
  if (elements == 0 || row_.shards_parameters) return;
  plan_.frames[entry.unit].unit = entry.unit;
  plan_.frames[entry.unit].state = chunk.state;
  const Op cast = {
      .name = "weights to fp8",
      .work = Cast{elements, context_.width, 1, true},
      .optimizer = true,
      .operands = {{Scope::state, Access::read, kParameters, -1}, {Scope::state, Access::write, kEightBit, -1}}};
  writer_.emit(cast, entry.unit);
}

// Uploads activations from the host while the block before runs back: those of this entry and of the next.
void PlanBuilder::fetch_activations(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  for (std::size_t at = pass.at; at < std::min(pass.at + 2, pass.entries.size()); ++at) {
    const std::size_t e = pass.entries[at];
    const Block& block = plan_.blocks[chunk.entries[e].block];
    const std::uint32_t frame = chunk.frames[pass.action.micro_batch * chunk.entries.size() + e];
    if (block.fetches == 0 || !fetched_.insert(frame).second) continue;
    for (std::uint32_t i = 0; i < block.fetches; ++i) writer_.emit(block.backward[i], frame);
  }
}

// Gives up the device's copy of activations that leave for the host when the block after them has been issued, or
// before anything runs back (Transformer Engine's cpu_offload waits as late: synchronize_on_group_commit_forward).
void PlanBuilder::release_activations() {
  if (leaving_ == kNone) return;
  for (const std::uint32_t op : plan_.blocks[plan_.frames[leaving_].block].release) writer_.emit(op, leaving_);
  leaving_ = kNone;
}

// Issues what the host does with a received tensor before it launches the ops that read it: the ops behind the transfer
// in the transfer's block. An input that comes without a transfer, from a virtual stage of the same stage, the host
// takes when its device has ended, in stacks that wait for the device before every forward.
void PlanBuilder::emit_waits(const Action& action) {
  const Chunk& chunk = chunks_[action.chunk];
  const bool forward = action.phase == Phase::forward;
  const std::size_t e = forward ? 0 : chunk.entries.size() - 1;
  const Block& block = plan_.blocks[chunk.entries[e].block];
  if (forward && !chunk.entries[e].transfer && block.role != BlockRole::embedding && spec_.software.blocking_forwards) {
    const Op wait = {.name = "wait for device", .work = Wait{true}, .host_waits = true};
    writer_.emit(wait, chunk.frames[action.micro_batch * chunk.entries.size()]);
  }
  if (!chunk.entries[e].transfer || action.phase == Phase::weight_gradient) return;
  const std::vector<std::uint32_t>& ops = forward ? block.forward : block.backward;
  for (const std::uint32_t op : ops) {
    if (!moves(plan_.ops[op])) writer_.emit(op, chunk.frames[action.micro_batch * chunk.entries.size() + e]);
  }
}

// Issues actions; woven ones take turns: while a transfer of one is on its way, the other computes. steady: between the
// stage's first backward and its last forward.
void PlanBuilder::emit_actions(std::span<const Action> woven, bool steady) {
  const Overlap& overlap = spec_.strategy.overlap;
  if (overlap.pipeline && (steady || overlap.pipeline_ends)) writer_.forget_sends();
  std::vector<Pass> passes;
  for (const Action& action : woven) {
    emit_waits(action);
    passes.push_back(begin(action));
  }
  for (bool left = true; left;) {
    left = false;
    for (Pass& pass : passes) {
      while (!pass.done() && !issue_next(pass)) continue;
      left = left || !pass.done();
    }
  }
}

void PlanBuilder::emit_stage(std::int64_t stage) {
  writer_.begin_slot();
  alive_.assign(plan_.buffers, 0);
  guests_.clear();
  gathered_.clear();
  reduced_.clear();
  released_.clear();
  arrived_.clear();
  staged_.clear();
  fetched_.clear();
  leaving_ = kNone;
  plan_.slots.back().begin = static_cast<TaskId>(plan_.tasks.size());
  context_.duty == Duty::server ? emit_server() : emit_worker(stage);
  plan_.slots.back().end = static_cast<TaskId>(plan_.tasks.size());
  plan_.tasks.back().flags |= kStepEnd;
  size_arena(draft_);
}

void PlanBuilder::emit_worker(std::int64_t stage) {
  begin_step();
  updates_ = 0;
  const std::span<const Action> order = schedule_.order[stage];
  const auto runs_back = [](const Action& a) { return a.phase != Phase::forward; };
  const auto filled = std::find_if(order.begin(), order.end(), runs_back) - order.begin();
  const auto drains = order.rend() - std::find_if_not(order.rbegin(), order.rend(), runs_back);
  for (std::size_t i = 0, woven = 0; i < order.size(); i += woven) {
    emit_turn(i);
    if (i > 0 && ends_update(order[i - 1])) finish_update();
    woven = 1;
    while (order[i + woven - 1].woven) ++woven;  // no transfer stands between woven actions
    const auto at = static_cast<std::ptrdiff_t>(i);
    emit_actions(order.subspan(i, woven), at >= filled && at <= drains);
  }
  emit_turn(order.size());
  finish_update();
  settle();
}

}  // namespace orrery
