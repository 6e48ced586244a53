#include "viz/replayed.h"

#include <algorithm>

#include "sim/replay.h"
#include "viz/json_scan.h"

namespace orrery {
namespace {

// A time that stands among an event's details, in microseconds.
bool read_time(const Details& details, std::string_view name, Picoseconds& time) {
  ExactTime exact;
  if (!parse_time(detail_named(details, name), exact)) return false;
  time = exact.microseconds * 1'000'000 + exact.picoseconds;
  return true;
}

}  // namespace

std::optional<double> replayed_engine_error(const Document& predicted, const Document& measured,
                                            const Matching& matching) {
  if (!predicted.simulated()) return std::nullopt;
  const Prediction& p = predicted.step->prediction;
  Trace trace;
  trace.source = "measured";
  trace.spans.resize(p.plan.task_count());
  for (TaskId t = 0; t < p.plan.task_count(); ++t) {
    const EventId there = matching.there[predicted.event_of_task[t]];
    if (there == kNoEvent) return std::nullopt;
    const Details d = details_of(measured.timeline, there);
    Span& s = trace.spans[t];
    if (!read_time(d, "issued", s.issued) || !read_time(d, "entered", s.entered) ||
        !read_time(d, "matched", s.matched) || !read_time(d, "ended", s.ended))
      return std::nullopt;
    trace.step_time = std::max(trace.step_time, s.ended);
  }
  if (trace.step_time <= 0) return std::nullopt;
  const Trace again = replay(p.plan, trace, p.profile.measured);
  return static_cast<double>(again.step_time) / static_cast<double>(trace.step_time) - 1;
}

}  // namespace orrery
