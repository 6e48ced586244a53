#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "models/layers/blocks.h"
#include "models/plan/plan.h"
#include "models/tasks/matches.h"

namespace orrery {

// Operands that stand for a whole buffer: index `slot` of a state, unit, own or rank frame.
inline Operand state(std::uint16_t slot, Access access) { return {Scope::state, access, slot, -1}; }
inline Operand unit(std::uint16_t slot, Access access) { return {Scope::unit, access, slot, -1}; }
inline Operand own(std::uint16_t slot, Access access) { return {Scope::own, access, slot, -1}; }
inline Operand number(std::uint16_t slot, Access access) { return {Scope::rank, access, slot, -1}; }

// An object that is notified of every task as it is issued.
struct TaskWatcher {
  virtual ~TaskWatcher() = default;
  virtual void issued(const Op& op, std::uint32_t frame, TaskId task) = 0;
};

// Writes the tasks of one rank slot after the other, in the order in which hosts issue them, with the dependencies that
// do not follow from the order of a lane: a task depends on the last writer of each buffer that it uses, and on every
// user of a buffer that it frees. The caller chooses which op comes next.
class TaskWriter {
 public:
  explicit TaskWriter(Plan& plan) : plan_(plan) {}

  void watch(TaskWatcher& watcher) { watchers_.push_back(&watcher); }
  void begin_slot();   // begins the plan's last slot
  void take_frames();  // extends the tables by frames that were added since the slot began

  TaskId emit(std::uint32_t op, std::uint32_t frame, const std::vector<TaskId>& after = {}, std::uint8_t flags = 0);
  // Adds the op to the plan, unless an equal one (name, size, place, use of operands) is there.
  TaskId emit(const Op& op, std::uint32_t frame, const std::vector<TaskId>& after = {}, std::uint8_t flags = 0);

  // Emits an op of a block that waits for the sends of the last turn, in stacks whose actions wait for them, and for
  // collectives that do not overlap with compute.
  TaskId emit_behind_held(std::uint32_t op, std::uint32_t frame);
  void hold_send(TaskId send) { sends_.push_back(send); }
  void forget_sends() { sends_.clear(); }
  void hold(std::vector<TaskId> collectives) { barrier_ = std::move(collectives); }

  TransferEnds& ends() { return ends_; }
  TaskId last_of(LaneKind lane) const { return last_in_lane_[static_cast<std::size_t>(lane)]; }
  // Records that a task writes a unit's part of a state buffer, which does not follow from the task's own frame.
  void note_write(std::uint32_t unit, StateSlot slot, TaskId task) { state_writers_[unit][slot] = task; }

 private:
  std::uint32_t op_id(const Op& op);
  TaskId* writer(std::uint32_t frame, const Operand& operand);
  std::uint32_t buffer_of(std::uint32_t frame, const Operand& operand) const;
  std::array<TaskId, kLanes> waits_of(const Op& op, std::uint32_t frame, const std::vector<TaskId>& after);
  void note_uses(const Op& op, std::uint32_t frame, TaskId task);

  Plan& plan_;
  std::vector<TaskWatcher*> watchers_;
  std::map<std::string, std::uint32_t> ops_;  // ids of ops, by what tells them apart
  std::vector<TaskId> writers_;               // last writer, by buffer id
  std::vector<TaskId> computed_with_;         // last user on the compute lane, by buffer id
  // Users on other lanes, as linked lists: moved_with_ has, by buffer id, the index of the last user in moved_uses_,
  // and each entry there names the one before it.
  struct MovedUse {
    TaskId task = kNone;
    std::uint32_t before = kNone;
  };
  std::vector<std::uint32_t> moved_with_;
  std::vector<MovedUse> moved_uses_;
  std::vector<std::array<TaskId, kStateSlots>> state_writers_;  // last writers, by unit frame, then state slot
  std::vector<TaskId> last_in_lane_;
  TransferEnds ends_;
  std::vector<TaskId> sends_, barrier_;  // tasks that the next op of a block waits for
};

}  // namespace orrery
