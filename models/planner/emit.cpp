// PlanBuilder: tasks of one slot in the order in which its host issues them, with the dependencies that lane order does
// not already give.
#include <algorithm>
#include <cassert>
#include <set>

#include "models/planner/plan_builder.h"

namespace orrery {

TaskId PlanBuilder::last_of(LaneKind lane) const { return last_in_lane_[static_cast<std::size_t>(lane)]; }

// The last writer of the buffer that an operand names. Weights and gradients in a chunk's flat buffers are tracked
// block by block.
TaskId* PlanBuilder::writer(std::uint32_t frame, const Operand& operand) {
  const Frame& f = plan_.frames[frame];
  if (operand.scope == Scope::state) {
    const std::uint32_t unit = f.unit;
    return unit == kNone ? nullptr : &state_writers_[unit][operand.slot];
  }
  const std::uint32_t target = frame_of(plan_, frame, operand);
  assert(target != kNone);
  return &writers_[plan_.frames[target].first_buffer + operand.slot];
}

TaskId PlanBuilder::emit(std::uint32_t op_index, std::uint32_t frame, const std::vector<TaskId>& after,
                         std::uint8_t flags) {
  const Op& op = plan_.ops[op_index];
  const auto id = static_cast<TaskId>(plan_.tasks.size());
  const auto lane = static_cast<std::uint32_t>(op.lane);
  std::array<TaskId, kLanes> wait;  // the latest task of every other lane that this one needs
  wait.fill(kNone);
  const auto need = [&](TaskId t) {
    if (t == kNone) return;
    const std::uint32_t from = plan_.tasks[t].lane % kLanes;
    if (from != lane && (wait[from] == kNone || wait[from] < t)) wait[from] = t;
  };
  for (const std::vector<Operand>* list : {&op.operands, &op.waits_for}) {
    for (const Operand& operand : *list) {
      if (const TaskId* last = writer(frame, operand)) need(*last);
    }
  }
  const auto buffer = [&](const Operand& o) { return plan_.frames[frame_of(plan_, frame, o)].first_buffer + o.slot; };
  // Nobody may still use a buffer that the op frees.
  for (const Operand& operand : op.frees) {
    if (const TaskId* last = writer(frame, operand)) need(*last);
    need(computed_with_[buffer(operand)]);
    for (std::uint32_t u = moved_with_[buffer(operand)]; u != kNone; u = moved_uses_[u].before)
      need(moved_uses_[u].task);
  }
  for (const TaskId t : after) need(t);
  const auto* device = std::get_if<Wait>(&op.work);
  if (device != nullptr && device->device) wait[lane] = last_of(LaneKind::compute);
  plan_.tasks.push_back({.op = op_index,
                         .frame = frame,
                         .lane = slot_ * kLanes + lane,
                         .first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size()),
                         .flags = flags});
  for (const TaskId t : wait) {
    if (t != kNone) plan_.dependencies.push_back(t);
  }
  last_in_lane_[lane] = id;
  for (const Operand& operand : op.operands) {
    if (op.lane == LaneKind::compute) {
      computed_with_[buffer(operand)] = id;
    } else {
      moved_uses_.push_back({id, moved_with_[buffer(operand)]});
      moved_with_[buffer(operand)] = static_cast<std::uint32_t>(moved_uses_.size() - 1);
    }
  }
  for (const Operand& operand : op.frees) moved_with_[buffer(operand)] = kNone;
  note_writes(op, frame, id);
  if (!schedule_.moves.empty()) note_alive(op, frame);
  return id;
}

void PlanBuilder::note_writes(const Op& op, std::uint32_t frame, TaskId task) {
  for (const Operand& operand : op.operands) {
    if (operand.access == Access::read) continue;
    TaskId* last = writer(frame, operand);
    if (last != nullptr) *last = task;
  }
  for (const Operand& operand : op.frees) {
    if (operand.scope != Scope::unit || operand.slot != kGathered) continue;
    gathered_[frame_of(plan_, frame, operand)] = false;
    released_.push_back(task);
  }
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
    emit(op, frame);
}

void PlanBuilder::emit_any(const Crossing& crossing) {
  if (crossing.move >= 0) return emit_move(crossing);
  if (crossing.exchange != StageExchange::none) return emit_exchange(crossing);
  emit_crossing(crossing);
}

void PlanBuilder::emit_turn(std::size_t turn) {
  const std::vector<std::vector<Crossing>>& turns = turns_[stage_];
  sends_.clear();
  for (std::size_t c = 0; c <= turns[turn].size(); ++c) {
    if (validates() && validation_places_[stage_] == TurnPlace{turn, c}) validate_update();
    if (c < turns[turn].size()) emit_any(turns[turn][c]);
  }
  const auto moves = [](const auto& crossings) { return !crossings.empty(); };
  if (validates() && !shares_table() && !turns[turn].empty() &&
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
  const Bytes before = (replica_ * parts + row_part()) * context_.local_rows * context_.hidden * context_.width;
  for (const std::uint32_t op : crossing.forward ? block.forward : block.backward) {
    const auto* transfer = std::get_if<Transfer>(&plan_.ops[op].work);
    if (transfer == nullptr) continue;
    const Bytes first = before + transfer->first;
    const TaskId task = emit(op, frame, {}, joins ? kJoinsPrevious : std::uint8_t{0});
    crossings_[{crossing.boundary, crossing.micro_batch, crossing.forward, parts > 1 ? 0 : class_, first}].push_back(
        task);
    if (crossing.send) sends_.push_back(task);
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
  const bool adds_late = spec_.software.accumulates_after_backward && !forward && !unit_gradients_ &&
                         action.micro_batch != chunk.last_micro_batch && !ends_update(action);
  if (pass.op < end && adds_late && std::holds_alternative<Accumulate>(plan_.ops[ops[pass.op]].work)) {
    pass.late.push_back({ops[pass.op++], frame, e});
  } else if (pass.op < end) {
    const bool tiles = row_.shards_parameters && spec_.strategy.offload.tiling > 1;
    if (tiles)
      gather_tiles(frame, std::span(ops).first(end).subspan(pass.op), forward ? Phase::forward : Phase::backward);
    const std::uint32_t op = ops[pass.op++];
    sends_.insert(sends_.end(), barrier_.begin(), barrier_.end());
    const TaskId task = emit(op, frame, sends_);
    sends_.clear();
    barrier_.clear();
    if (!forward) after_backward_op(chunk, e, plan_.ops[op], task);
    if (!forward && tiles) reduce_tiles(chunk, frame, op);
    moved = moves(plan_.ops[op]);
  }
  if (pass.op < end) return moved;
  const bool ends_backward = action.phase == Phase::backward || weights;
  if (ends_backward && unit_gradients_ && reduces_apart(entry))
    reduce_unit(entry.owns ? chunk : table_chunk(), entry.unit);
  if (forward) {
    release_activations();
    if (!block.release.empty()) leaving_ = chunk.frames[action.micro_batch * chunk.entries.size() + e];
  }
  ++pass.at;
  pass.begun = false;
  if (pass.done()) {
    for (const Late& late : pass.late)
      after_backward_op(chunk, late.entry, plan_.ops[late.op], emit(late.op, late.frame));
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
  emit(op_id(cast), entry.unit);
}

// Uploads activations from the host while the block before runs back: those of this entry and of the next.
void PlanBuilder::fetch_activations(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  for (std::size_t at = pass.at; at < std::min(pass.at + 2, pass.entries.size()); ++at) {
    const std::size_t e = pass.entries[at];
    const Block& block = plan_.blocks[chunk.entries[e].block];
    const std::uint32_t frame = chunk.frames[pass.action.micro_batch * chunk.entries.size() + e];
    if (block.fetches == 0 || !fetched_.insert(frame).second) continue;
    for (std::uint32_t i = 0; i < block.fetches; ++i) emit(block.backward[i], frame);
  }
}

// Gives up the device's copy of activations that leave for the host when the block after them has been issued, or
// before anything runs back (Transformer Engine's cpu_offload waits as late: synchronize_on_group_commit_forward).
void PlanBuilder::release_activations() {
  if (leaving_ == kNone) return;
  for (const std::uint32_t op : plan_.blocks[plan_.frames[leaving_].block].release) emit(op, leaving_);
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
    emit(op_id(wait), chunk.frames[action.micro_batch * chunk.entries.size()]);
  }
  if (!chunk.entries[e].transfer || action.phase == Phase::weight_gradient) return;
  const std::vector<std::uint32_t>& ops = forward ? block.forward : block.backward;
  for (const std::uint32_t op : ops) {
    if (!moves(plan_.ops[op])) emit(op, chunk.frames[action.micro_batch * chunk.entries.size() + e]);
  }
}

// Issues actions; woven ones take turns: while a transfer of one is on its way, the other computes. steady: between the
// stage's first backward and its last forward.
void PlanBuilder::emit_actions(std::span<const Action> woven, bool steady) {
  const Overlap& overlap = spec_.strategy.overlap;
  if (overlap.pipeline && (steady || overlap.pipeline_ends)) sends_.clear();
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
  writers_.resize(plan_.buffers, kNone);
  computed_with_.resize(plan_.buffers, kNone);
  moved_with_.resize(plan_.buffers, kNone);
  moved_uses_.clear();
  alive_.assign(plan_.buffers, 0);
  guests_.clear();
  state_writers_.resize(plan_.frames.size(), [] {
    std::array<TaskId, kStateSlots> none;
    none.fill(kNone);
    return none;
  }());
  last_in_lane_.assign(kLanes, kNone);
  sends_.clear();
  barrier_.clear();
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
  size_arena();
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

// Dimensions whose groups have members in several slots.
std::vector<Dimension> PlanBuilder::dimensions_over_slots() const {
  std::vector<Dimension> result;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    std::set<std::int32_t> groups;
    for (const RankSlot& slot : plan_.slots) groups.insert(plan_.dimensions[d].member_of[slot.representative]);
    if (groups.size() < plan_.slots.size()) result.push_back(static_cast<Dimension>(d));
  }
  return result;
}

// Ends of one transfer, and members of one collective that lie on several slots, are one match. Classes of one stage
// meet in the groups of Plan::meeting; in their other groups each keeps to itself.
void PlanBuilder::link_matches() {
  const auto add = [&](const std::vector<TaskId>& members) {
    if (members.size() < 2) return;
    for (const TaskId t : members) plan_.tasks[t].match = static_cast<std::uint32_t>(plan_.matches.size());
    plan_.matches.push_back(
        {static_cast<std::uint32_t>(plan_.match_members.size()), static_cast<std::uint32_t>(members.size())});
    plan_.match_members.insert(plan_.match_members.end(), members.begin(), members.end());
  };
  for (const auto& [key, members] : crossings_) add(members);
  for (const auto& [key, members] : parcel_ends_) add(members);
  // The n-th collectives of a dimension and lane on the slots of one group belong together.
  const std::vector<Dimension> shared = dimensions_over_slots();
  std::map<std::tuple<Dimension, LaneKind, std::int32_t, int, std::int64_t>, std::vector<TaskId>> collectives;
  for (const RankSlot& slot : plan_.slots) {
    std::map<std::pair<Dimension, LaneKind>, std::int64_t> count;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Op& op = plan_.op_of(t);
      const auto* c = std::get_if<Collective>(&op.work);
      if (c == nullptr || std::find(shared.begin(), shared.end(), c->group) == shared.end()) continue;
      const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(c->group)];
      const int apart = plan_.meet(c->group) ? 0 : plan_.class_of(slot.representative);
      collectives[{c->group, op.lane, table.member_of[slot.representative], apart, count[{c->group, op.lane}]++}]
          .push_back(t);
    }
  }
  for (const auto& [key, members] : collectives) add(members);
}

}  // namespace orrery
