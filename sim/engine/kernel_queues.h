#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// One hardware queue for all kernels of a rank (Timing::one_queue): a kernel begins when those launched before it have
// begun, whatever their lanes. Slots have a queue each. A plan that check_plan() lets pass does not deadlock in these
// queues: its transfers could be made one after another in issue order, and computing tasks wait for earlier tasks of
// the same slot alone.
class KernelQueues {
 public:
  // one: whether ranks have one queue; else no kernel waits for its turn.
  KernelQueues(const Plan& plan, bool one) : plan_(plan) {
    if (!one) return;
    for (const RankClass& slot : plan.classes) fronts_.push_back(first_kernel(slot.begin));
    held_.resize(plan.task_count());
  }

  // Whether a task has a turn to wait for.
  bool takes(TaskId t) const { return !fronts_.empty() && is_kernel(t); }

  // Called when a kernel for which takes() is true might begin: calls begin(task) for the kernels whose turn has come,
  // in their order.
  template <typename Begin>
  void arrive(TaskId t, Begin begin) {
    const std::uint32_t slot = plan_.slot_of(t);
    held_[t] = true;
    for (TaskId& front = fronts_[slot]; front < plan_.classes[slot].end && held_[front];) {
      const TaskId next = front;
      front = first_kernel(front + 1);
      begin(next);
    }
  }

 private:
  // Copies and the host's work have queues of their own. Stacks post receives an action or more earlier than the plan,
  // which has a receive at the point where the data comes: receives hold nothing up.
  bool is_kernel(TaskId t) const {
    switch (static_cast<LaneKind>(plan_.tasks[t].lane % kLanes)) {
      case LaneKind::receive_previous:
      case LaneKind::receive_next:
      case LaneKind::receive_partner:
      case LaneKind::d2h:
      case LaneKind::h2d:
      case LaneKind::cpu:
      case LaneKind::nvme_read:
      case LaneKind::nvme_write:
        return false;
      default:
        return true;
    }
  }

  // The first kernel from t on; behind the last kernel of a slot comes one of another slot, which never arrives here.
  TaskId first_kernel(TaskId t) const {
    while (t < plan_.task_count() && !is_kernel(t)) ++t;
    return t;
  }

  const Plan& plan_;
  std::vector<TaskId> fronts_;  // by slot: the next kernel to begin; none: no kernel waits
  std::vector<char> held_;      // by task: whether it has arrived
};

}  // namespace orrery
