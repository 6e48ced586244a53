#pragma once

#include <string>
#include <vector>

#include "sim/predict/predict.h"
#include "sim/print/section.h"
#include "sim/print/text.h"
#include "sim/runs/measured.h"

namespace orrery {

// The relative error of a prediction, predicted / measured - 1; 0 where nothing was measured.
inline double relative_error(double predicted, double measured) { return measured > 0 ? predicted / measured - 1 : 0; }

// The predicted and the measured time of one kind of op. Errors are predicted / measured - 1.
struct KindError {
  std::string kind;  // kind of op: "gemm/output fp32", "all_reduce"
  std::int64_t count = 0;
  Seconds predicted = 0, measured = 0;  // times of the ops of this kind in one step, summed over all ranks
  double error() const { return relative_error(predicted, measured); }
};

// kind_errors(): predicted and measured time of each kind of op, longest measured time first, both between the same two
// events of each task. predicted: a prediction that simulates every rank. cost_error(): the sum over kinds of
// |predicted - measured|, divided by the sum of measured times.
std::vector<KindError> kind_errors(const Prediction& predicted, const Trace& measured);
double cost_error(const std::vector<KindError>& kinds);

// A prediction compared with a measured run of the same plan. The error of the step time is split into that of
// durations (cost error) and that of order and waiting (engine error).
struct Validation {
  std::string name;
  Report predicted, measured;
  std::vector<KindError> kinds;  // errors of each kind of op, those with the longest measured time first

  // Cost error, without sign: the sum over kinds of op of |predicted - measured| time, divided by the sum of measured
  // times.
  double cost_error = 0;
  Seconds replayed = 0;  // time of the median step when simulated with its measured durations
  // Median time of the steps in which no task was timed; 0: there were none.
  Seconds unmarked = 0;
  // How much the run's step times scatter: interquartile range over median.
  double spread = 0;
  double step_error = 0, engine_error = 0, memory_error = 0;
  std::string failure;  // reason why some figures are missing; "" = no figure is missing
};

// Compares a prediction with a run. predicted: the prediction of every rank (unfolded). Step times are compared by the
// median, memory by the rank with the largest error. on_gpus: whether the run was on the GPUs of the spec.
Validation validate(const Spec& spec, const Prediction& predicted, std::span<const RankRun> runs, bool on_gpus = false);

// The comparison as a text for people. A sample:
//   small.yaml                 predicted  measured   error
//   step                        62.10 ms  60.30 ms  +3.0 %  (the run's own spread 4.1 %)
std::string validation_text(const Validation& v, const Style& style = {});

// A table with a row for each validated spec, below it the median and worst errors, and the reasons of comparisons that
// failed.
std::string validation_table(const std::vector<Validation>& all, const Style& style);

// The comparison of one spec with its run (validation_sections), and the table of all comparisons (validation_section),
// as sections for the text and for a page.
std::vector<Section> validation_sections(const Validation& v);
Section validation_section(const std::vector<Validation>& all);

// A line "NAME failed: WHY" for a comparison that failed.
std::string failure_line(const std::string& name, const std::string& failure);

std::string to_json(const std::vector<Validation>& all);  // the results as JSON with the schema orrery.validation/1

}  // namespace orrery
