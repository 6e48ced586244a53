#include "viz/read/measured_step.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "models/trace/json_scan.h"
#include "sim/validate/replay.h"
#include "sim/validate/validation.h"
#include "viz/read/chrome_event.h"

namespace orrery {
namespace {

// Reads an exact time from an event's details; returns false if there is none.
bool exact_time(const Details& details, std::string_view key, Picoseconds& time) {
  ExactTime t;
  if (!parse_time(detail_named(details, key), t)) return false;
  time = t.microseconds * 1'000'000 + t.picoseconds;
  return true;
}

bool span_of(const Details& details, Span& span) {
  span.cause = number_in<TaskId>(detail_named(details, "cause task"), kNone);
  return exact_time(details, "issued", span.issued) && exact_time(details, "entered", span.entered) &&
         exact_time(details, "matched", span.matched) && exact_time(details, "ended", span.ended);
}

// The largest difference, in picoseconds, between event times in a trace and the exact times in the events' arguments.
// The times differ because the event times are rounded.
constexpr Picoseconds kTraceRounding = 1000;

// Shifts the times of a task, which were written before the clocks of the trace's files were aligned. They are shifted
// by as much as the alignment has shifted the events of the task's file.
void move(Span& span, Picoseconds by) {
  if (std::abs(by) < kTraceRounding) return;
  for (Picoseconds* time : {&span.issued, &span.entered, &span.matched, &span.ended}) *time += by;
}

}  // namespace

MeasuredTasks tasks_of(const Plan& plan, const Timeline& timeline) {
  MeasuredTasks result;
  result.trace.source = timeline.source;
  result.trace.step_time = timeline.end;
  result.trace.spans.resize(plan.task_count());
  std::vector<bool> known(plan.task_count());
  std::size_t found = 0;
  for (EventId e = 0; e < timeline.events(); ++e) {
    if (timeline.kind(e) == Kind::host || timeline.kind(e) == Kind::wait) continue;
    const Details details = details_of(timeline, e);
    const auto task = number_in<TaskId>(detail_named(details, "correlation"), kNone);
    Span span;
    if (task == kNone || !span_of(details, span)) {
      result.why_not = "the trace does not say which task an event is";
      return result;
    }
    move(span, timeline.ends[e] - span.ended);
    if (task >= plan.task_count() || (span.cause != kNone && span.cause >= plan.task_count()) || known[task] ||
        detail_named(details, "op") != plan.op_of(task).name) {
      result.why_not = "the trace is of another plan";
      return result;
    }
    known[task] = true;
    result.trace.spans[task] = span;
    ++found;
  }
  if (found != plan.task_count())
    result.why_not = found == 0 ? "the trace does not say which task an event is"
                                : fmt::format("the trace has {} of the plan's {} tasks", found, plan.task_count());
  return result;
}

PredictionError prediction_error(const Prediction& p, const Trace& measured) {
  const double step = seconds(measured.step_time);
  return {relative_error(seconds(p.trace.step_time) + p.report.memory.remapping_s, step),
          cost_error(kind_errors(p, measured)), relative_error(seconds(replay(p.plan, measured).step_time), step)};
}

}  // namespace orrery
