#include "sim/predict/run_steps.h"

#include <algorithm>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/plan/repeat_steps.h"
#include "models/spec/asynchrony.h"
#include "sim/engine/simulate.h"
#include "sim/report/attribution.h"

namespace orrery {
namespace {

constexpr std::int64_t kSteps = 3;  // steps of the run; the last one is the steady one

// A simulated run of `kSteps` steps, and which of its tasks are those of one of the steps.
class SteppedRun {
 public:
  SteppedRun(const Prediction& one, const std::atomic<bool>* stop)
      : one_(one.plan), plan_(repeat_in_turn(one.plan, kSteps)), trace_(simulate(plan_, one.costs.timing, stop)) {}

  // Returns when the last rank ends a step; 0 for the step -1.
  Picoseconds end_of(std::int64_t step) const {
    Picoseconds end = 0;
    for_each_task(step, [&](TaskId, TaskId t) { end = std::max(end, trace_.spans[t].ended); });
    return end;
  }

  // Returns how each rank spends the time from the end of the step before to the end of a step, in the ops of the plan
  // of one step: a repeated plan has the same.
  Attribution time_of(std::int64_t step) const { return attribute(plan_, trace_, {end_of(step - 1), end_of(step)}); }

  // Returns the trace of one step, whose time 0 is when the first rank begins the step's work, at the latest when the
  // last one has ended the step before.
  Trace trace_of(std::int64_t step) const {
    Picoseconds zero = end_of(step - 1);
    for_each_task(step, [&](TaskId, TaskId t) {
      const Span& span = trace_.spans[t];
      if (span.ended > span.matched) zero = std::min(zero, span.matched);
    });
    Trace result;
    result.spans.resize(one_.task_count());
    for_each_task(step, [&](TaskId own, TaskId t) {
      Span span = trace_.spans[t];
      for (Picoseconds* time : {&span.issued, &span.entered, &span.matched, &span.ended}) *time -= zero;
      span.entered = std::max<Picoseconds>(0, span.entered);
      span.cause = in_step(step, span.cause);
      result.spans[own] = span;
    });
    result.step_time = end_of(step) - zero;
    for (std::uint32_t slot = 0; slot < one_.classes.size(); ++slot) result.host.push_back(host_of(step, slot, zero));
    return result;
  }

 private:
  TaskId count(std::uint32_t slot) const { return one_.classes[slot].end - one_.classes[slot].begin; }
  TaskId first(std::int64_t step, std::uint32_t slot) const {
    return plan_.classes[slot].begin + static_cast<TaskId>(step) * count(slot);
  }

  // Calls function(task of the plan of one step, task of the run) for the tasks of a step.
  template <class Function>
  void for_each_task(std::int64_t step, const Function& function) const {
    for (std::uint32_t slot = 0; step >= 0 && slot < one_.classes.size(); ++slot) {
      for (TaskId i = 0; i < count(slot); ++i) function(one_.classes[slot].begin + i, first(step, slot) + i);
    }
  }

  // Returns the task of the plan of one step that a task of the run is in a step; kNone if it is of another step.
  TaskId in_step(std::int64_t step, TaskId t) const {
    if (t == kNone) return kNone;
    const std::uint32_t slot = plan_.slot_of(t);
    const TaskId begin = first(step, slot);
    return t < begin || t >= begin + count(slot) ? kNone : t - begin + one_.classes[slot].begin;
  }

  std::vector<HostResume> host_of(std::int64_t step, std::uint32_t slot, Picoseconds zero) const {
    const TaskId begin = first(step, slot);
    std::vector<HostResume> result = {{one_.classes[slot].begin, launch_start(plan_, trace_, begin) - zero, kNone}};
    for (const HostResume& h : trace_.host[slot]) {
      if (h.first > begin && h.first < begin + count(slot))
        result.push_back({in_step(step, h.first), h.time - zero, in_step(step, h.cause)});
    }
    return result;
  }

  const Plan& one_;
  Plan plan_;
  Trace trace_;
};

}  // namespace

RunSteps steps_of_run(const Spec& spec, const Prediction& one, const std::atomic<bool>* stop) {
  require_training(spec);
  if (one.plan.steps > 1 || asynchronous_workers(spec.strategy))
    throw Error(with_place(spec, "spec: steps of asynchronous updates do not begin one after the other"));
  const SteppedRun run(one, stop);
  constexpr std::int64_t kSteady = kSteps - 1;
  const Picoseconds period = run.end_of(kSteady) - run.end_of(kSteady - 1);
  Prediction first = one, steady = one;
  first.trace = run.trace_of(0);
  steady.trace = run.trace_of(kSteady);
  first.report = make_report(spec, one.plan, first.trace, one.costs.notes, one.report.memory);
  steady.report =
      make_report(spec, one.plan, steady.trace, one.costs.notes, one.report.memory, run.time_of(kSteady), period);
  for (Prediction* p : {&first, &steady}) p->report.remarks = one.report.remarks;
  return {std::move(first), std::move(steady), period};
}

}  // namespace orrery
