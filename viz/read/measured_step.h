#pragma once

#include <string>

#include "models/trace/trace.h"
#include "sim/predict/predict.h"
#include "viz/timeline/timeline.h"

namespace orrery {

// The step that a trace of ours tells of, task by task: every event of a task says which it is and its exact times.
// plan: of every rank. Where the timeline is not of this plan `why_not` says so, and the trace is empty.
struct MeasuredTasks {
  Trace trace;
  std::string why_not;
};
MeasuredTasks tasks_of(const Plan& plan, const Timeline& timeline);

// A prediction held against that step as `orrery validate` does it (sim/validate/validation.h): step over step; cost:
// durations, kind by kind of op without sign; engine: the measured durations played again, over the measured step.
// Minus 1.
struct PredictionError {
  double step = 0, cost = 0, engine = 0;
};
PredictionError prediction_error(const Prediction& prediction, const Trace& measured);

}  // namespace orrery
