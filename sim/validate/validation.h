#pragma once

#include <string>
#include <vector>

#include "sim/predict/predict.h"
#include "sim/print/text.h"
#include "sim/runs/measured.h"

namespace orrery {

// The error of a prediction relative to the measurement; 0 where nothing was measured.
inline double relative_error(double predicted, double measured) { return measured > 0 ? predicted / measured - 1 : 0; }

// Times of one kind of task. Errors are predicted over measured, minus 1.
struct KindError {
  std::string kind;  // "gemm/output fp32", "all_reduce"
  std::int64_t count = 0;
  Seconds predicted = 0, measured = 0;  // sums over all ranks of one step
  double error() const { return relative_error(predicted, measured); }
};

// Times of the tasks of each kind, predicted and measured between the same two moments of a task; the longest first.
// predicted: the prediction of every rank. cost_error: sum of |predicted - measured| over kinds, over the sum measured.
std::vector<KindError> kind_errors(const Prediction& predicted, const Trace& measured);
double cost_error(const std::vector<KindError>& kinds);

// A prediction compared with a run of the same plan, and the error split by its causes.
struct Validation {
  std::string name;
  Report predicted, measured;
  std::vector<KindError> kinds;  // kinds of ops by measured time, the longest first

  // Error of all ops together, by time, without sign: sum |predicted - measured| over kinds.
  double cost_error = 0;
  Seconds replayed = 0;  // time of the median step, simulated with its measured durations
  Seconds unmarked = 0;  // median of the steps in which no task was timed; 0: all were
  double spread = 0;     // spread of the run's steps: quartile distance over median
  double step_error = 0, engine_error = 0, memory_error = 0;
  std::string failure;  // why some figures are missing; "" = nothing is missing
};

// predicted: the prediction of every rank (unfolded), like the runs. Steps are compared by their median, memory by the
// rank with the largest error. on_gpus: whether the run was on the device of the spec.
Validation validate(const Spec& spec, const Prediction& predicted, std::span<const RankRun> runs, bool on_gpus = false);

// For people. A sample:
//   small.yaml                 predicted  measured   error
//   step                        62.10 ms  60.30 ms  +3.0 %  (the run's own spread 4.1 %)
std::string validation_text(const Validation& v);

// A table of all specs, with median and worst errors below, and why some failed.
std::string validation_table(const std::vector<Validation>& all, const Style& style);

// A line "  NAME failed: WHY\n"; "" where nothing failed.
std::string failure_line(const std::string& name, const std::string& failure);

std::string to_json(const std::vector<Validation>& all);  // schema orrery.validation/1

}  // namespace orrery
