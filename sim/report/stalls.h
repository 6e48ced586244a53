#pragma once

#include <cstdint>
#include <optional>

#include "models/base/units.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The second state of a stack's steps: in some runs, and then in every step of them, the host of each pipeline stage
// waits in every micro-batch, whatever the model. In the runs that published it, with nanotron, a micro-batch took 0.55
// s longer with two stages and twice that with more, so that each neighbour of a stage adds as much (receivers read the
// shape of what comes on the host; why that takes so long is not known), and never without a pipeline nor
// in any of 72 runs with a pipeline and one data rank. A run is in one of the two states for all its length. As the
// hosts wait, they see that collectives have ended before they allocate more, so that no collective holds its input and
// output beyond its end (MemoryOptions::collectives_hold_tensors): the memory of stalled runs is that
// (MemoryReport::stalled).
struct StalledStep {
  Seconds step_time = 0;
  // Published runs of the stack with a pipeline and data ranks: how many of them stalled, and how many there are.
  std::int64_t seen = 0, runs = 0;
};

// Returns whether steps have a second state: the stack is known to (models/data/fitted.json, "stalls"), and the spec
// has a pipeline and several data ranks.
bool can_stall(const Spec& spec);

// Returns the step in its second state, whose usual time is `step_time` (seconds): plus a micro-batch's wait for each
// of at most two neighbours, times the micro-batches. nullopt: the step has no such state.
std::optional<StalledStep> stalled_step(const Spec& spec, Seconds step_time);

// Adds a remark on that state, its time and its memory to a report, if the step has one.
void add_stalls_remark(Report& report, const Spec& spec);

}  // namespace orrery
