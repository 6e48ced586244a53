#include "sim/report/steps_overlap.h"

#include <algorithm>

#include "models/plan/repeat_steps.h"
#include "sim/engine/simulate.h"

namespace orrery {

// Returns the time from the begin of one step to the begin of the next if stages do not wait for each other between
// steps: the longest time that any stage takes from its first forward (and the work before it) to its last update.
// Other stages need not be waited for: those that begin later also end later, and the part of the gradient norm that a
// stage sends on arrives while the next stage is still busy.
static Picoseconds staggered_period(const Plan& plan, const Trace& trace) {
  Picoseconds longest = 0;
  for (const RankClass& slot : plan.classes) {
    Picoseconds before = 0, begin = 0, end = 0;
    bool begun = false;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Span& span = trace.spans[t];
      const Op& op = plan.op_of(t);
      if (op.lane != LaneKind::compute) continue;
      end = std::max(end, span.ended);
      if (begun) continue;
      begun = op.phase == Phase::forward;
      if (begun) begin = span.entered;
      if (!begun) before += span.ended - span.entered;
    }
    longest = std::max(longest, end - begin + std::min(before, begin));
  }
  return std::min(longest, trace.step_time);
}

// Subtracts a time from the kinds of time in which ranks wait for each other.
static void subtract_waits(TimeSplit& from, double overlap) {
  for (const TimeKind kind : {TimeKind::bubble, TimeKind::exposed_pipeline, TimeKind::launch, TimeKind::other,
                              TimeKind::exposed_data, TimeKind::exposed_tensor, TimeKind::imbalance}) {
    double& time = from[static_cast<std::size_t>(kind)];
    const double part = std::min(time, overlap);
    time -= part;
    overlap -= part;
  }
}

void overlap_steps(Report& r, const Plan& plan, const Trace& trace) {
  const double overlap = seconds(trace.step_time - staggered_period(plan, trace));
  r.step_time_s -= overlap;
  subtract_waits(r.time_s, overlap);
}

Picoseconds period_of_models(const Plan& plan, const Timing& timing) {
  const auto time = [&](std::int64_t steps) { return simulate(repeat_in_turn(plan, steps), timing).step_time; };
  // Steps begin while ranks are in the step before, so that the first ones differ from those after them.
  constexpr std::int64_t kMostSteps = 8;
  Picoseconds before = time(2), period = 0;
  for (std::int64_t steps = 3; steps <= kMostSteps; ++steps) {
    const Picoseconds now = time(steps);
    if (now - before == period) break;
    period = now - before;
    before = now;
  }
  return period;
}

void overlap_models(Report& r, const Plan& plan, double overlap) {
  r.time_s = {};
  for (std::size_t i = 0; i < r.models.size(); ++i) {
    ModelTime& m = r.models[i];
    for (const RankClass& c : plan.classes) m.gpus += c.second == (i == 1) ? c.multiplicity : 0;
    TimeSplit& time = m.time_s;
    subtract_waits(time, overlap * static_cast<double>(m.gpus) / static_cast<double>(plan.ranks));
    for (int k = 0; k < kTimeKinds; ++k) r.time_s[k] += time[k];
  }
}

void add_idle_shares(Report& r) {
  double step = 0, gpus = 0;
  for (const double time : r.time_s) step += time;
  for (const ModelTime& m : r.models) gpus += static_cast<double>(m.gpus);
  for (ModelTime& m : r.models) {
    if (m.gpus == 0) continue;
    double busy = 0;
    for (const TimeKind k : {TimeKind::compute, TimeKind::recompute, TimeKind::optimizer})
      busy += m.time_s[static_cast<std::size_t>(k)];
    m.idle_share = std::max(0.0, 1 - busy * gpus / (static_cast<double>(m.gpus) * step));
  }
}

}  // namespace orrery
