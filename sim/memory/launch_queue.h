#pragma once

#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The launches that may be waiting in a device's queue, which holds kLaunchQueue of them, when its host makes the next
// one. plan: must outlive this object.
class LaunchQueue {
 public:
  explicit LaunchQueue(const Plan& plan);

  // Empties the queue before the first task of a class of ranks.
  void restart(TaskId first);
  // Adds the launches of the next task. Returns the last task that must have begun for them to have room in the queue;
  // kNone: there is room.
  TaskId add(TaskId t);

 private:
  const Plan& plan_;
  std::vector<TaskId> launches_;   // for each op, its number of launches
  TaskId queued_ = 0;              // number of launches in the queue
  TaskId first_ = 0, oldest_ = 0;  // first task of the class, and the first task that has launches in the queue
};

}  // namespace orrery
