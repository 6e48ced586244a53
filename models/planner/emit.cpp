#include "models/planner/emit.h"

#include <algorithm>
#include <variant>

#include "models/layout/arena.h"
#include "models/planner/asynchronous.h"

namespace orrery {

void StepWalk::issue(const StageTransfer& transfer) {
  for (const auto& part : parts_) {
    if (part->issue(transfer)) return;
  }
  cross(transfer);
}

void StepWalk::turn(std::size_t turn) {
  const std::vector<StageTransfer>& transfers = draft_.transfer_order[draft_.at.stage][turn];
  writer_.forget_sends();
  for (std::size_t c = 0; c <= transfers.size(); ++c) {
    tell(&StepPart::before_transfer, turn, c);
    if (c < transfers.size()) issue(transfers[c]);
  }
  tell(&StepPart::after_turn, turn);
}

// Returns the indices of a chunk's entries that send what the chunk passes on to the next virtual stage (upstream), or
// receive what comes from the previous one: one entry for each model.
static std::vector<std::size_t> boundary_entries(const Plan& plan, const Chunk& chunk, bool upstream) {
  const BlockRole other = upstream ? BlockRole::receive : BlockRole::send;
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < chunk.entries.size(); ++i) {
    const std::size_t e = upstream ? chunk.entries.size() - 1 - i : i;
    if (!chunk.entries[e].transfer || plan.blocks[chunk.entries[e].block].role == other) break;
    list.push_back(e);
  }
  if (upstream) std::reverse(list.begin(), list.end());
  return list;
}

// Issues a transfer between two virtual stages, as one send or receive for each slice of the tensor's rows. If a stage
// is replicated, sender and receiver issue the transfers over a boundary in the order of samples, and transfers are not
// batched.
void StepWalk::cross(const StageTransfer& transfer) {
  // whether this stage has the virtual stage before the boundary that the tensor crosses; otherwise it has the one
  // after
  const bool upstream = transfer.forward == transfer.send;
  const std::int32_t virtual_stage = transfer.boundary + (upstream ? 0 : 1);
  const Chunk& chunk = chunks_[schedule_.chunk_of[virtual_stage]];
  const bool batches = spec_.software.communication.batched_p2p && spec_.strategy.stage_replicas.empty();
  bool joins = transfer.joins_previous && batches;
  const std::int64_t parts = spec_.strategy.row_parts();
  const Bytes before =
      (draft_.at.replica * parts + draft_.row_part()) * context_.local_rows * context_.stream * context_.width;
  Bytes of_models_before = 0;  // bytes of the models whose transfers over this boundary were issued
  for (const std::size_t entry : boundary_entries(plan_, chunk, upstream)) {
    const std::uint32_t frame = chunk.frame_of(transfer.micro_batch, entry);
    const Block& block = plan_.blocks[chunk.entries[entry].block];
    for (const std::uint32_t op : transfer.forward ? block.forward : block.backward) {
      const auto* slice = std::get_if<Transfer>(&plan_.ops[op].work);
      if (slice == nullptr) continue;
      const Bytes first = of_models_before + before + slice->first;
      const TaskId task = writer_.emit(op, frame, {}, joins ? kJoinsPrevious : std::uint8_t{0});
      writer_.ends().transfers.push_back(
          {{transfer.boundary, transfer.micro_batch, transfer.forward, parts > 1 ? 0 : draft_.at.rank_kind, first},
           task});
      if (transfer.send) writer_.hold_send(task);
    }
    // The second model's hidden states travel in the batch of those of the model that trains.
    joins = batches;
    of_models_before += context_.local_rows * context_.stream * context_.width;
  }
}

Pass StepWalk::begin(const Action& action) const {
  Pass pass = {.action = action, .entries = {}};
  const std::vector<Entry>& entries = chunks_[action.chunk].entries;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    if (!entries[e].transfer && (action.phase == Phase::forward || !entries[e].second)) pass.entries.push_back(e);
  }
  if (action.phase != Phase::forward) std::reverse(pass.entries.begin(), pass.entries.end());
  return pass;
}

// Returns whether the op that adds a micro-batch's gradients to the sums is issued only after the complete backward of
// the micro-batch, as in some frameworks. For the last micro-batch of an update it is issued in its own place, as it is
// in every backward if 16-bit gradients are kept beside the sums, where blocks that share a table overwrite each
// other's gradients.
bool StepWalk::adds_late(const Pass& pass, const Op& op) const {
  const Action& action = pass.action;
  return std::holds_alternative<Accumulate>(op.work) && spec_.software.communication.accumulates_after_backward &&
         !pass.forward() && !facts_.unit_gradients && !spec_.strategy.keep_16bit_gradients &&
         action.micro_batch != chunks_[action.chunk].last_micro_batch && !ends_update(draft_, action);
}

// Returns whether a woven action gives way to the other one after the op `at` of a block: after the last of the
// transfers that take tokens to experts or back, not after an exchange for which the host waits at once, nor, in a
// layer with experts, after transfers of other groups (Megatron-Core model_chunk_schedule_plan.py: attention with the
// router, dispatch, experts, combine are the nodes that alternate).
static bool gives_way(const Plan& plan, std::span<const std::uint32_t> ops, std::size_t at) {
  const auto for_experts = [&](std::uint32_t op) {
    return plan.ops[op].lane == LaneKind::expert && moves(plan.ops[op]);
  };
  if (!moves(plan.ops[ops[at]])) return false;
  if (!for_experts(ops[at])) return std::none_of(ops.begin(), ops.end(), for_experts);
  if (at + 1 == ops.size()) return true;
  return !for_experts(ops[at + 1]) && !plan.ops[ops[at + 1]].host_waits;
}

bool StepWalk::issue_next(Pass& pass) {
  const Action& action = pass.action;
  const Chunk& chunk = chunks_[action.chunk];
  const std::size_t e = pass.entry();
  const bool forward = pass.forward();
  if (!pass.begun) tell(&StepPart::before_block, pass);
  const Block& block = plan_.blocks[chunk.entries[e].block];
  if (!pass.begun) pass.op = pass.weights_alone() ? block.input_gradients : forward ? 0 : block.fetches;
  pass.begun = true;
  const std::vector<std::uint32_t>& ops = forward ? block.forward : block.backward;
  const std::size_t end = action.phase == Phase::input_gradient ? block.input_gradients : ops.size();
  const std::uint32_t frame = chunk.frame_of(action.micro_batch, e);
  bool moved = false;
  if (pass.op < end && adds_late(pass, plan_.ops[ops[pass.op]])) {
    pass.late.push_back({ops[pass.op++], frame, e});
  } else if (pass.op < end) {
    tell(&StepPart::before_op, pass, std::span(ops).first(end).subspan(pass.op));
    moved = gives_way(plan_, std::span(ops).first(end), pass.op);
    const std::uint32_t op = ops[pass.op++];
    const TaskId task = writer_.emit_behind_held(op, frame);
    if (!forward) tell(&StepPart::after_backward_op, pass, e, op, task);
  }
  if (pass.op < end) return moved;
  tell(&StepPart::after_block, pass);
  ++pass.at;
  pass.begun = false;
  if (!pass.done()) return moved;
  for (const Pass::Late& late : pass.late)
    tell(&StepPart::after_backward_op, pass, late.entry, late.op, writer_.emit(late.op, late.frame));
  return moved;
}

// Issues the ops that come after the receive of an action's input (an action is one forward or backward of a
// micro-batch on a chunk). One of them is the host's wait for the received tensor, in frameworks whose host waits for
// it before it launches the ops that read it. An input from a virtual stage on the same pipeline stage is not received;
// then only a host that waits for its device before every forward waits, and does so here.
void StepWalk::wait_for_input(const Action& action) {
  const Chunk& chunk = chunks_[action.chunk];
  const bool forward = action.phase == Phase::forward;
  const std::size_t e = forward ? 0 : chunk.entries.size() - 1;
  const Block& block = plan_.blocks[chunk.entries[e].block];
  if (forward && !chunk.entries[e].transfer && block.role != BlockRole::embedding && block.role != BlockRole::vision &&
      spec_.software.communication.blocking_forwards) {
    const Op wait = {.name = "wait for device", .work = Wait{true}, .host_waits = true};
    writer_.emit(wait, chunk.frame_of(action.micro_batch, 0));
  }
  if (!chunk.entries[e].transfer || action.phase == Phase::weight_gradient) return;
  for (const std::size_t boundary : boundary_entries(plan_, chunk, !forward)) {
    const Block& crosses = plan_.blocks[chunk.entries[boundary].block];
    for (const std::uint32_t op : forward ? crosses.forward : crosses.backward) {
      if (!moves(plan_.ops[op])) writer_.emit(op, chunk.frame_of(action.micro_batch, boundary));
    }
  }
}

// Issues one action, or several overlapped ones (a forward and a backward, `woven`), which alternate: whenever one has
// issued a transfer, the other continues with compute. The backward begins, so that the tokens of its last layer's
// combine travel under the forward's first attention. steady: the actions are between the stage's first backward and
// its last forward.
void StepWalk::run(std::span<const Action> woven, bool steady) {
  const Overlap& overlap = spec_.strategy.overlap;
  if (overlap.pipeline && (steady || overlap.pipeline_ends)) writer_.forget_sends();
  std::vector<Pass> passes;
  for (const Action& action : woven) {
    wait_for_input(action);
    passes.push_back(begin(action));
  }
  std::stable_partition(passes.begin(), passes.end(), [](const Pass& pass) { return !pass.forward(); });
  for (bool left = true; left;) {
    left = false;
    for (Pass& pass : passes) {
      while (!pass.done() && !issue_next(pass)) continue;
      left = left || !pass.done();
    }
  }
}

void StepWalk::walk() {
  tell(&StepPart::begin_step);
  const std::span<const Action> order = schedule_.order[draft_.at.stage];
  const auto runs_back = [](const Action& a) { return a.phase != Phase::forward; };
  const auto filled = std::find_if(order.begin(), order.end(), runs_back) - order.begin();
  const auto drains = order.rend() - std::find_if_not(order.rbegin(), order.rend(), runs_back);
  for (std::size_t i = 0, woven = 0; i < order.size(); i += woven) {
    turn(i);
    if (i > 0 && ends_update(draft_, order[i - 1])) end_step();
    woven = 1;
    while (order[i + woven - 1].woven) ++woven;  // overlapped actions are issued together, with no transfer between
    const auto at = static_cast<std::ptrdiff_t>(i);
    run(order.subspan(i, woven), at >= filled && at <= drains);
  }
  turn(order.size());
  end_step();
}

void StepWalk::end_step() {
  tell(&StepPart::reduce);
  tell(&StepPart::update);
  tell(&StepPart::end_step);
  if (!spec_.software.communication.blocking_steps || facts_.forward_only()) return;
  const Op read = {.name = "read loss", .work = Wait{true}, .phase = Phase::step, .host_waits = true};
  writer_.emit(read, chunks_.front().state, {writer_.last_of(LaneKind::cpu), writer_.last_of(LaneKind::h2d)});
}

void StepWalk::write_slot() {
  writer_.begin_slot();
  tell(&StepPart::begin_slot);
  plan_.classes.back().begin = static_cast<TaskId>(plan_.tasks.size());
  context_.duty == Duty::server ? tell(&StepPart::serve) : walk();
  tell(&StepPart::end_slot);
  plan_.classes.back().end = static_cast<TaskId>(plan_.tasks.size());
  plan_.tasks.back().flags |= kStepEnd;
  size_arena(draft_);
}

}  // namespace orrery
