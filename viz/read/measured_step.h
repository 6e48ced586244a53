#pragma once

#include <string>

#include "models/trace/trace.h"
#include "sim/predict/predict.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// The measured step of a trace that Orrery wrote, task by task: every event of a task names the task and its exact
// times. plan: the plan of all ranks. If the timeline does not come from an execution of this plan, `why_not` says why,
// and the trace must not be used.
struct MeasuredTasks {
  Trace trace;
  std::string why_not;
};
MeasuredTasks tasks_of(const Plan& plan, const Timeline& timeline);

// The errors of a prediction of a measured step, as `orrery validate` computes them (sim/validate/validation.h). step:
// predicted over measured step time, minus 1. cost: the sum over kinds of op of |predicted - measured| duration, over
// the measured sum. engine: step time simulated with the measured durations, over the measured step time, minus 1.
struct PredictionError {
  double step = 0, cost = 0, engine = 0;
};
PredictionError prediction_error(const Prediction& prediction, const Trace& measured);

}  // namespace orrery
