#include "sim/memory/launch_queue.h"

#include <algorithm>

namespace orrery {

// The number of entries that a task puts into the device's launch queue: one for each kernel and, for a collective,
// four more, because PyTorch records two events and lets two streams wait for them (ProcessGroupNCCL.cpp, syncStream
// and WorkNCCL::synchronize).
static TaskId launches(const Op& op) {
  constexpr TaskId kEvents = 4;
  return static_cast<TaskId>(std::max(1, kernels_of(op.work))) + (moves(op) ? kEvents : 0);
}

LaunchQueue::LaunchQueue(const Plan& plan) : plan_(plan) {
  launches_.reserve(plan.ops.size());
  for (const Op& op : plan.ops) launches_.push_back(launches(op));
}

void LaunchQueue::restart(TaskId first) {
  queued_ = 0;
  first_ = oldest_ = first;
}

TaskId LaunchQueue::add(TaskId t) {
  for (queued_ += launches_[plan_.tasks[t].op]; queued_ > kLaunchQueue; ++oldest_)
    queued_ -= launches_[plan_.tasks[oldest_].op];
  return oldest_ > first_ ? oldest_ - 1 : kNone;
}

}  // namespace orrery
