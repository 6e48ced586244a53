#include "models/generation/token_hand_over.h"

#include <algorithm>

namespace orrery {
namespace {

constexpr Bytes kTokenBytes = 8;
constexpr std::uint16_t kTokens = 0;  // index of the only buffer

Op op_of(const char* name, const Work& work, LaneKind lane, Access access) {
  const Operand tokens = {Scope::own, access, kTokens, -1};
  Op op = {.name = name, .work = work, .lane = lane, .operands = {tokens}};
  (access == Access::write ? op.allocates : op.frees) = {tokens};
  return op;
}

bool leaves_stage(const Plan& plan, TaskId t) {
  const auto* transfer = std::get_if<Transfer>(&plan.op_of(t).work);
  return transfer != nullptr && transfer->send;
}

std::int64_t micro_batch_of(const Plan& plan, TaskId t) { return plan.frames[plan.tasks[t].frame].micro_batch; }

}  // namespace

TokenHandOver::TokenHandOver(Plan& joined, const Spec& spec, std::int64_t micro_batches, std::int64_t first_choice)
    : joined_(joined),
      stages_(spec.strategy.pipeline),
      of_pass_(micro_batches),
      first_(first_choice * micro_batches),
      drains_(spec.strategy.virtual_stages > 1) {
  const std::int64_t rows = spec.strategy.micro_batch;
  const auto add_op = [&](Op op, bool within) {
    op.within = within;
    joined_.ops.push_back(std::move(op));
    return static_cast<std::uint32_t>(joined_.ops.size() - 1);
  };
  // The host copies tokens from and to the buffers; its time is part of that between passes (software.step_us).
  load_ = add_op(op_of("chosen tokens to send", Load{rows}, LaneKind::compute, Access::write), true);
  send_ = add_op(op_of("send tokens", Transfer{.send = true, .offset = 1, .bytes = rows * kTokenBytes},
                       LaneKind::send_next, Access::read),
                 false);
  receive_ = add_op(op_of("receive tokens", Transfer{.send = false, .offset = -1, .bytes = rows * kTokenBytes},
                          LaneKind::receive_previous, Access::write),
                    false);
  take_ = add_op(op_of("received tokens", Cast{rows, kTokenBytes, kTokenBytes}, LaneKind::compute, Access::read), true);
  const auto add_block = [&](const char* name, std::uint32_t first, std::uint32_t second) {
    joined_.blocks.push_back({.name = name,
                              .role = BlockRole::exchange,
                              .buffers = {{"tokens", rows * kTokenBytes, Category::buffers}},
                              .forward = {first, second}});
    return static_cast<std::uint32_t>(joined_.blocks.size() - 1);
  };
  sent_block_ = add_block("tokens for the first stage", load_, send_);
  received_block_ = add_block("tokens of the last stage", receive_, take_);
}

std::uint32_t TokenHandOver::add_frame(std::uint32_t slot, std::uint32_t block, std::int64_t item) {
  joined_.frames.push_back(
      {.block = block, .first_buffer = joined_.buffers, .slot = slot, .micro_batch = static_cast<std::int32_t>(item)});
  joined_.buffers += static_cast<std::uint32_t>(joined_.blocks[block].buffers.size());
  return static_cast<std::uint32_t>(joined_.frames.size() - 1);
}

TaskId TokenHandOver::add(std::uint32_t op, std::uint32_t frame, std::uint32_t slot, const std::vector<TaskId>& after) {
  joined_.tasks.push_back({.op = op,
                           .frame = frame,
                           .lane = slot * kLanes + static_cast<std::uint32_t>(joined_.ops[op].lane),
                           .first_dependency = static_cast<std::uint32_t>(joined_.dependencies.size())});
  joined_.dependencies.insert(joined_.dependencies.end(), after.begin(), after.end());
  return static_cast<TaskId>(joined_.tasks.size() - 1);
}

std::uint32_t TokenHandOver::in_stage(std::uint32_t slot) const {
  std::uint32_t number = 0;
  for (std::uint32_t s = 0; s < slot; ++s) number += joined_.classes[s].stage == joined_.classes[slot].stage ? 1 : 0;
  return number;
}

void TokenHandOver::send(std::uint32_t slot, std::int64_t item) {
  const std::uint32_t frame = add_frame(slot, sent_block_, item);
  const TaskId loaded = add(load_, frame, slot, {});
  ends_[{item, in_stage(slot)}].push_back(add(send_, frame, slot, {loaded}));
}

void TokenHandOver::receive(std::uint32_t slot, std::int64_t item) {
  const TaskId task = add(receive_, add_frame(slot, received_block_, item), slot, {});
  ends_[{item, in_stage(slot)}].push_back(task);
  received_[{slot, item}] = task;
}

// Appends the task that reads the tokens of a micro-batch on the first stage, after a receive if there was none yet.
void TokenHandOver::read(std::uint32_t slot, std::int64_t item) {
  if (!received_.contains({slot, item})) receive(slot, item);
  const TaskId received = received_.at({slot, item});
  add(take_, joined_.tasks[received].frame, slot, {received});
  received_.erase({slot, item});
}

void TokenHandOver::before(std::uint32_t slot, std::int64_t pass, const Plan& plan, TaskId t) {
  const RankClass& ranks = plan.classes[slot];
  if (ranks.stage != 0) return;
  const std::int64_t item = pass * of_pass_ + micro_batch_of(plan, t);
  if (drains_) {
    for (std::int64_t j = 0; t == ranks.begin && j < of_pass_; ++j) {
      if (chosen((pass - 1) * of_pass_ + j)) read(slot, (pass - 1) * of_pass_ + j);
    }
    return;
  }
  const std::int64_t sent = item - stages_ + 1;
  if (leaves_stage(plan, t) && sent > item - of_pass_ && chosen(sent)) receive(slot, sent);
  const bool begins = std::holds_alternative<Load>(plan.op_of(t).work);
  if (begins && chosen(item - of_pass_)) read(slot, item - of_pass_);
}

void TokenHandOver::after(std::uint32_t slot, std::int64_t pass, const Plan& plan, TaskId t) {
  const RankClass& ranks = plan.classes[slot];
  if (ranks.stage + 1 != stages_) return;
  const std::int64_t item = pass * of_pass_ + micro_batch_of(plan, t);
  if (!drains_) {
    const bool ends = t + 1 == ranks.end || plan.tasks[t + 1].frame != plan.tasks[t].frame;
    const bool computes = plan.blocks[plan.frames[plan.tasks[t].frame].block].role == BlockRole::output;
    if (computes && ends && chosen(item)) send(slot, item);
    return;
  }
  for (std::int64_t j = 0; t + 1 == ranks.end && j < of_pass_; ++j) {
    if (chosen(pass * of_pass_ + j)) send(slot, pass * of_pass_ + j);
  }
}

}  // namespace orrery
