#include "models/tasks/task_writer.h"

#include <cassert>
#include <variant>

#include <fmt/format.h>

namespace orrery {

void TaskWriter::begin_slot() {
  moved_uses_.clear();
  last_in_lane_.assign(kLanes, kNone);
  sends_.clear();
  barrier_.clear();
  take_frames();
}

void TaskWriter::take_frames() {
  writers_.resize(plan_.buffers, kNone);
  computed_with_.resize(plan_.buffers, kNone);
  moved_with_.resize(plan_.buffers, kNone);
  std::array<TaskId, kStateSlots> none;
  none.fill(kNone);
  state_writers_.resize(plan_.frames.size(), none);
}

std::uint32_t TaskWriter::op_id(const Op& op) {
  Bytes size = 0;
  std::int64_t first = 0;
  Dimension group = Dimension::data;
  if (const auto* c = std::get_if<Collective>(&op.work)) {
    size = c->bytes;
    first = c->first;
    group = c->group;
  }
  if (const auto* c = std::get_if<Cast>(&op.work)) size = c->elements;
  if (const auto* q = std::get_if<Quantize>(&op.work)) size = q->elements;
  if (const auto* q = std::get_if<Dequantize>(&op.work)) size = q->elements;
  if (const auto* u = std::get_if<Update>(&op.work)) {
    size = u->elements;
    first = u->first;
  }
  if (const auto* c = std::get_if<PlaceCopy>(&op.work)) {
    size = c->bytes;
    first = c->first;
  }
  if (const auto* n = std::get_if<SquaredNorm>(&op.work)) size = n->elements;
  if (const auto* m = std::get_if<MoveDirections>(&op.work)) {
    size = m->elements;
    first = m->first;
  }
  if (const auto* c = std::get_if<Multiply>(&op.work)) {
    size = c->elements;
    first = c->first;
  }
  if (const auto* f = std::get_if<Fill>(&op.work)) size = f->bytes;
  if (const auto* a = std::get_if<Accumulate>(&op.work)) size = a->elements;
  if (const auto* t = std::get_if<Transfer>(&op.work)) {
    size = t->bytes;
    first = t->offset;
  }
  std::string key = fmt::format("{} {} {} {} {}", op.name, size, first, op.allocates.size(), op.frees.size());
  key += fmt::format(" {} {} {}", static_cast<int>(op.phase), static_cast<int>(op.lane), static_cast<int>(group));
  if (const auto* o = std::get_if<Orthogonalize>(&op.work))
    key += fmt::format(" {} {} {} {}", o->rows, o->columns, o->first, o->parameter);
  for (const Operand& o : op.operands) {
    key += fmt::format(" {}.{}.{}.{}", static_cast<int>(o.scope), o.slot, static_cast<int>(o.access),
                       static_cast<int>(o.part));
  }
  const auto [it, fresh] = ops_.try_emplace(key, static_cast<std::uint32_t>(plan_.ops.size()));
  if (fresh) plan_.ops.push_back(op);
  return it->second;
}

// Returns the table entry that notes the last task that wrote an operand's buffer. The flat buffers of a chunk's states
// have one entry for each unit (weights that are gathered together); nullptr if there is no unit.
TaskId* TaskWriter::writer(std::uint32_t frame, const Operand& operand) {
  const Frame& f = plan_.frames[frame];
  if (operand.scope == Scope::state) {
    const std::uint32_t unit = f.unit;
    return unit == kNone ? nullptr : &state_writers_[unit][operand.slot];
  }
  const std::uint32_t target = frame_of(plan_, frame, operand);
  assert(target != kNone);
  return &writers_[plan_.frames[target].first_buffer + operand.slot];
}

std::uint32_t TaskWriter::buffer_of(std::uint32_t frame, const Operand& operand) const {
  return plan_.frames[frame_of(plan_, frame, operand)].first_buffer + operand.slot;
}

// Returns for every lane but the op's own the latest task that the op must wait for, or kNone.
std::array<TaskId, kLanes> TaskWriter::waits_of(const Op& op, std::uint32_t frame, const std::vector<TaskId>& after) {
  const auto lane = static_cast<std::uint32_t>(op.lane);
  std::array<TaskId, kLanes> wait;
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
  // An op waits for all tasks that use a buffer which it frees.
  for (const Operand& operand : op.frees) {
    if (const TaskId* last = writer(frame, operand)) need(*last);
    const std::uint32_t buffer = buffer_of(frame, operand);
    need(computed_with_[buffer]);
    for (std::uint32_t u = moved_with_[buffer]; u != kNone; u = moved_uses_[u].before) need(moved_uses_[u].task);
  }
  for (const TaskId t : after) need(t);
  const auto* device = std::get_if<Wait>(&op.work);
  if (device != nullptr && device->device) wait[lane] = last_of(LaneKind::compute);
  return wait;
}

void TaskWriter::note_uses(const Op& op, std::uint32_t frame, TaskId task) {
  for (const Operand& operand : op.operands) {
    const std::uint32_t buffer = buffer_of(frame, operand);
    if (op.lane == LaneKind::compute) {
      computed_with_[buffer] = task;
    } else {
      moved_uses_.push_back({task, moved_with_[buffer]});
      moved_with_[buffer] = static_cast<std::uint32_t>(moved_uses_.size() - 1);
    }
  }
  for (const Operand& operand : op.frees) moved_with_[buffer_of(frame, operand)] = kNone;
  for (const Operand& operand : op.operands) {
    if (operand.access == Access::read) continue;
    TaskId* last = writer(frame, operand);
    if (last != nullptr) *last = task;
  }
}

TaskId TaskWriter::emit(std::uint32_t op_index, std::uint32_t frame, const std::vector<TaskId>& after,
                        std::uint8_t flags) {
  const Op& op = plan_.ops[op_index];
  const auto id = static_cast<TaskId>(plan_.tasks.size());
  const auto lane = static_cast<std::uint32_t>(op.lane);
  const std::array<TaskId, kLanes> wait = waits_of(op, frame, after);
  plan_.tasks.push_back({.op = op_index,
                         .frame = frame,
                         .lane = static_cast<std::uint32_t>(plan_.classes.size() - 1) * kLanes + lane,
                         .first_dependency = static_cast<std::uint32_t>(plan_.dependencies.size()),
                         .flags = flags});
  for (const TaskId t : wait) {
    if (t != kNone) plan_.dependencies.push_back(t);
  }
  last_in_lane_[lane] = id;
  note_uses(op, frame, id);
  for (TaskWatcher* watcher : watchers_) watcher->issued(op, frame, id);
  return id;
}

TaskId TaskWriter::emit(const Op& op, std::uint32_t frame, const std::vector<TaskId>& after, std::uint8_t flags) {
  return emit(op_id(op), frame, after, flags);
}

TaskId TaskWriter::emit_behind_held(std::uint32_t op, std::uint32_t frame) {
  sends_.insert(sends_.end(), barrier_.begin(), barrier_.end());
  const TaskId task = emit(op, frame, sends_);
  sends_.clear();
  barrier_.clear();
  return task;
}

}  // namespace orrery
