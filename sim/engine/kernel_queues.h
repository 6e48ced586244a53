#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// One hardware queue for all kernels of a rank, as CUDA_DEVICE_MAX_CONNECTIONS=1 gives: a kernel begins only when all
// kernels launched before it on the rank have begun, whatever their lanes (streams). A plan that passes check_plan()
// does not deadlock in such queues, since its transfers could be made one after another in issue order, and compute
// tasks wait only for earlier tasks of the same rank.
class KernelQueues {
 public:
  // one: whether each rank has a single queue; if false, no kernel waits for the launches before it.
  KernelQueues(const Plan& plan, bool one) : plan_(plan) {
    if (!one) return;
    for (const RankClass& slot : plan.classes) fronts_.push_back(first_kernel(slot.begin));
    held_.resize(plan.task_count());
  }

  // Returns whether a task has to wait until the kernels launched before it have begun.
  bool must_queue(TaskId t) const { return !fronts_.empty() && is_kernel(t); }

  // Must be called when a kernel (a task for which must_queue() is true) waits only for the launch queue. Calls
  // begin(task), in launch order, for this kernel if it may begin, and for the kernels behind it that may then begin
  // too.
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
  // Returns whether a task counts as a kernel. Copies to and from the host or disks and the host's own work do not
  // count: they have queues of their own. Receives do not count either: the plan issues a receive where its data
  // arrives, but real frameworks post it at least one pass earlier, so that it holds back no later kernel.
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

  // Returns the first kernel at or after task t. If the class of ranks has no further kernel, the result is a kernel of
  // the next class or the total number of tasks, either of which ends the loop in arrive().
  TaskId first_kernel(TaskId t) const {
    while (t < plan_.task_count() && !is_kernel(t)) ++t;
    return t;
  }

  const Plan& plan_;
  std::vector<TaskId> fronts_;  // for each class of ranks, its next kernel to begin; empty if kernels need not wait
  // for each task, whether it waits, or waited, for nothing but its turn in the launch queue
  std::vector<char> held_;
};

}  // namespace orrery
