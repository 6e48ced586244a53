#pragma once

#include <vector>

#include "viz/timeline/launches.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// A training step of a rank, as PyTorch's profiler marks it on the host ("ProfilerStep#7"), or of a simulation.
struct MarkedStep {
  std::int64_t rank = -1, number = 0;
  Picoseconds begin = 0, end = 0;
};

// The steps of a trace, and the step of each of its events: the one in which the host launched the event or, where the
// launch is not known, in which the event begins. Steps count from 0 in each rank, whatever their numbers are. A trace
// without marks is one step.
class Steps {
 public:
  // launches: those of the timeline, which must outlive the steps; it may be empty.
  Steps(const Timeline& timeline, const Launches& launches);
  bool marked() const { return !steps_.empty(); }  // whether the trace marks steps
  int count() const { return count_; }             // the most steps of a rank; at least 1
  int count_of(std::int64_t rank) const;           // steps of one rank
  int of(EventId e, std::uint32_t process) const;  // index of the event's step; -1: the event is between two steps
  Picoseconds mean_time() const;  // mean length of a step; that of the whole trace if no steps are marked
  // Begin of the first work (works()) in step 0; 0 without any.
  Picoseconds first_work() const { return first_; }

 private:
  const Timeline& t_;
  const Launches& launches_;
  std::vector<MarkedStep> steps_;  // marked steps, sorted by rank and time
  int count_ = 1;
  Picoseconds first_ = 0;
};

}  // namespace orrery
