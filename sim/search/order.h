#pragma once

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "models/base/units.h"
#include "models/schedule/schedules.h"
#include "sim/search/costs.h"

namespace orrery {

// The least time of one micro-batch on a virtual stage, pass by pass. early: the part of backward that can run before
// the gradient from the next stage has arrived.
struct VirtualStage {
  PassCost forward, backward, weight;
  Picoseconds early = 0;

  Picoseconds way_back() const { return std::max<Picoseconds>(0, backward.to_result() - early); }
};

// The order in which the stages of a schedule run their passes, and counts that depend on this order alone, not on
// times.
struct KnownOrder {
  Schedule schedule;
  std::vector<std::vector<std::int32_t>> virtual_stage;  // [stage][chunk]: index of the virtual stage

  // [stage][chunk]: number of micro-batches that are alive (between forward and backward) in the chunk, at the moment
  // when most are alive on the stage as a whole.
  std::vector<std::vector<std::int64_t>> alive;
};

// Whether the planner chooses the schedule's order of passes by the times of the virtual stages.
bool needs_times(std::string_view schedule);

// A cache of schedules' orders of passes. It keeps orders while their total length is small; of orders that depend on
// the times of passes, it keeps only the last.
class KnownOrders {
 public:
  // The order of a schedule; nullptr where the order is too long to be timed for a bound.
  const KnownOrder* of(std::string_view schedule, const ScheduleShape& shape);

 private:
  std::string_view fitted_schedule_;
  ScheduleShape fitted_shape_;
  KnownOrder fitted_;
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t, std::int64_t, std::int64_t>, KnownOrder> known_;
  std::int64_t actions_ = 0;
};

// For each stage, the earliest time at which it has run its last action (a pass of one micro-batch). An action waits
// for the action before it on the same stage, and for its input. hops[k]: time to send from virtual stage k to k + 1.
// waits: whether a stage's next action waits until the tensor that the stage has sent has arrived. A forward and a
// backward that overlap op by op together take the time of their kernels.
std::vector<Picoseconds> play(const KnownOrder& order, const std::vector<VirtualStage>& costs,
                              const std::vector<Picoseconds>& hops, bool waits);

}  // namespace orrery
