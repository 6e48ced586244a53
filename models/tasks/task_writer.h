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

// Each of these functions returns an operand that is a complete buffer, the one with index `slot`: among the states of
// a chunk of layers (state), the buffers of a unit of weights gathered together (unit), those of the task's own block
// (own), or the rank's scalars, such as the gradient norm (number).
inline Operand state(std::uint16_t slot, Access access) { return {Scope::state, access, slot, -1}; }
inline Operand unit(std::uint16_t slot, Access access) { return {Scope::unit, access, slot, -1}; }
inline Operand own(std::uint16_t slot, Access access) { return {Scope::own, access, slot, -1}; }
inline Operand number(std::uint16_t slot, Access access) { return {Scope::rank, access, slot, -1}; }

// An object that is notified of every task when the task is written to the plan.
struct TaskWatcher {
  virtual ~TaskWatcher() = default;
  virtual void issued(const Op& op, std::uint32_t frame, TaskId task) = 0;
};

// Writes the tasks of one slot (class of ranks) after the other, in the order in which hosts issue them, with the
// dependencies that do not follow from the order of a lane: a task depends on the last writer of each buffer that it
// uses, and on every user of a buffer that it frees. The caller chooses which op comes next.
class TaskWriter {
 public:
  explicit TaskWriter(Plan& plan) : plan_(plan) {}

  void watch(TaskWatcher& watcher) { watchers_.push_back(&watcher); }
  void begin_slot();  // begins to write the tasks of the last class of ranks (slot) of the plan
  // extends the tables below, of the last writers and users of buffers, to the frames (instances of buffers) that were
  // added to the plan since begin_slot()
  void take_frames();

  TaskId emit(std::uint32_t op, std::uint32_t frame, const std::vector<TaskId>& after = {}, std::uint8_t flags = 0);
  // Writes a task of `op`. The op is added to the plan unless the plan already has an equal one (same name, sizes, lane
  // and use of operands). after: tasks that this task waits for in addition.
  TaskId emit(const Op& op, std::uint32_t frame, const std::vector<TaskId>& after = {}, std::uint8_t flags = 0);

  // Writes a task of a block's op. Besides its own dependencies, the task waits for the sends that hold_send() noted
  // (in frameworks where an action waits for the sends before it) and for the collectives that hold() noted (which do
  // not overlap with compute).
  TaskId emit_behind_held(std::uint32_t op, std::uint32_t frame);
  void hold_send(TaskId send) { sends_.push_back(send); }
  void forget_sends() { sends_.clear(); }
  void hold(std::vector<TaskId> collectives) { barrier_ = std::move(collectives); }

  TransferEnds& ends() { return ends_; }
  TaskId last_of(LaneKind lane) const { return last_in_lane_[static_cast<std::size_t>(lane)]; }
  // Records that a task writes the part of a state buffer that belongs to a unit (weights that are gathered together);
  // used where the task's own frame does not say which unit it is.
  void note_write(std::uint32_t unit, StateSlot slot, TaskId task) { state_writers_[unit][slot] = task; }

 private:
  std::uint32_t op_id(const Op& op);
  TaskId* writer(std::uint32_t frame, const Operand& operand);
  std::uint32_t buffer_of(std::uint32_t frame, const Operand& operand) const;
  std::array<TaskId, kLanes> waits_of(const Op& op, std::uint32_t frame, const std::vector<TaskId>& after);
  void note_uses(const Op& op, std::uint32_t frame, TaskId task);

  Plan& plan_;
  std::vector<TaskWatcher*> watchers_;
  std::map<std::string, std::uint32_t> ops_;  // ids of ops; the key is a text of the properties in which ops differ
  std::vector<TaskId> writers_;               // for each buffer (by id), the last task that writes it
  std::vector<TaskId> computed_with_;         // for each buffer (by id), the last task on the compute lane that uses it
  // The tasks on other lanes than compute that use a buffer, as linked lists: moved_with_ has, by buffer id, the index
  // in moved_uses_ of the last such task, and each entry of moved_uses_ has the index of the entry before it.
  struct MovedUse {
    TaskId task = kNone;
    std::uint32_t before = kNone;
  };
  std::vector<std::uint32_t> moved_with_;
  std::vector<MovedUse> moved_uses_;
  // for each unit (id of the frame with its buffers) and state buffer, the last task that writes the unit's part of it
  std::vector<std::array<TaskId, kStateSlots>> state_writers_;
  std::vector<TaskId> last_in_lane_;
  TransferEnds ends_;
  std::vector<TaskId> sends_, barrier_;  // sends and collectives that the next op of a block waits for
};

}  // namespace orrery
