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

// What one micro-batch takes at least on a virtual stage, pass by pass. early: of backward, what can be done before the
// gradient has come.
struct VirtualStage {
  PassCost forward, backward, weight;
  Picoseconds early = 0;

  Picoseconds way_back() const { return std::max<Picoseconds>(0, backward.to_result() - early); }
};

// The order in which a schedule's stages run their actions, and what follows from it alone.
struct KnownOrder {
  Schedule schedule;
  std::vector<std::vector<std::int32_t>> virtual_stage;  // [stage][chunk]
  // [stage][chunk]: micro-batches whose forward has run and whose backward has not, where a stage has most of them.
  std::vector<std::vector<std::int64_t>> alive;
};

// Whether a schedule's order fits the times of the virtual stages.
bool needs_times(std::string_view schedule);

// Orders, kept while they are few enough; of those that fit times, the last one.
class KnownOrders {
 public:
  // nullptr where the order is too long to be played for a bound.
  const KnownOrder* of(std::string_view schedule, const ScheduleShape& shape);

 private:
  std::string_view fitted_schedule_;
  ScheduleShape fitted_shape_;
  KnownOrder fitted_;
  std::map<std::tuple<std::string_view, std::int64_t, std::int64_t, std::int64_t, std::int64_t>, KnownOrder> known_;
  std::int64_t actions_ = 0;
};

// When every stage has run its last action, at least: an action waits for the one before it on its stage, and for what
// it reads, which takes hops[k] between the virtual stages k and k + 1. waits: a stage's next action waits until what
// it has sent has arrived. Actions that are woven share the stage: together they take what their kernels take.
std::vector<Picoseconds> play(const KnownOrder& order, const std::vector<VirtualStage>& costs,
                              const std::vector<Picoseconds>& hops, bool waits);

}  // namespace orrery
