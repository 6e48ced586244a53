#pragma once

#include <span>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/trace/trace.h"
#include "models/trace/trace_file.h"
#include "sim/predict/predict.h"
#include "sim/print/section.h"
#include "sim/print/text.h"

namespace orrery {

// The trace of a step that is composed of measurements of ranks that ran one by one, each alone on a complete device
// (`orrery run --composed`). A compute task takes as long as measured (the median over all steps but the first);
// transfers and the host take as long as predicted; order, waiting and overlap are simulated. Such a step is called
// composed and never counts as measured.
Trace compose(const Prediction& predicted, std::span<const RankRun> alone);

// A rank's measured compute time and memory beside the predicted ones. Errors are predicted / measured - 1.
struct ComposedRank {
  std::string name;
  Seconds predicted = 0, measured = 0;  // compute times of the tasks of one step, summed
  Bytes predicted_peak = 0, measured_peak = 0;
  double compute_error() const { return measured > 0 ? predicted / measured - 1 : 0; }
  double memory_error() const;
};
struct Composed {
  std::string name;
  Seconds predicted_step = 0, composed_step = 0;
  std::vector<ComposedRank> ranks;
  Report report;        // report of the step that is composed of the ranks' measurements
  std::string failure;  // reason why some figures are missing; "" = no figure is missing
};
Composed compare_composed(const Spec& spec, const Prediction& predicted, std::span<const RankRun> alone);

// A table with a row for every rank of every spec, and below it medians and worst errors. A sample:
//   spec     rank     compute predicted  measured  error %  peak predicted  measured  error %
//   tp2      stage 0           12.10 ms  12.30 ms     -1.6       9.92 GiB   9.93 GiB     -0.1
Section composed_section(const std::vector<Composed>& all);  // the table as a section, for the text and for a page
std::string composed_table(const std::vector<Composed>& all, const Style& style);
std::string to_json(const std::vector<Composed>& all);  // the results as JSON with the schema orrery.composed/1
double worst_compute_error(const Composed& c);          // the greatest |error| of the compute time of any rank

}  // namespace orrery
