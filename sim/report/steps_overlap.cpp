#include "sim/report/steps_overlap.h"

#include <algorithm>

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

void overlap_steps(Report& r, const Plan& plan, const Trace& trace) {
  double overlap = seconds(trace.step_time - staggered_period(plan, trace));
  r.step_time_s -= overlap;
  for (const TimeKind kind : {TimeKind::bubble, TimeKind::exposed_pipeline, TimeKind::launch, TimeKind::other,
                              TimeKind::exposed_data, TimeKind::exposed_tensor, TimeKind::imbalance}) {
    double& time = r.time_s[static_cast<std::size_t>(kind)];
    const double part = std::min(time, overlap);
    time -= part;
    overlap -= part;
  }
}

}  // namespace orrery
