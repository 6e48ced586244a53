#pragma once

#include <string>
#include <vector>

#include "sim/published/fit.h"
#include "sim/published/predict.h"
#include "sim/report/interval.h"

namespace orrery {

// A published step: its measured time over the predicted time, and the properties by which similar steps are found.
struct StepResidual {
  std::string gpu;  // the GPU's architecture: "ampere"
  std::string software, source;
  double ratio = 1;  // measured step time / predicted step time
};

// Returns the ratio of every published step that is not doubtful. fit: its ratios, with constants that were fitted
// without the step's publication, are taken, of steps that were predicted so. cases[i] must be of the fit's row i.
std::vector<StepResidual> residuals(const std::vector<PublishedCase>& cases, const Refit& fit);

// Steps of one kind of GPU and one stack; "": of any.
struct IntervalClass {
  std::string gpu, software;
  std::size_t rows = 0;
  Interval interval;
};

// Makes the 80 % interval of every class of at least ten steps, for a new publication: a normal distribution of ln
// ratio, whose variance is that between publications plus that within one (a random-effects model as DerSimonian and
// Laird 1986, but for their subtraction of what chance within publications adds to the variance between them). Within
// one stack a publication counts as the square root of its rows, as these share a cluster; over all stacks of a kind of
// GPU publications count equally, as the next stack is not known. As few publications tell little of the variance
// between them, two more are added that lie one spread of all publications apart, and the mean is drawn to 1 by one
// more. An interval always holds the prediction.
std::vector<IntervalClass> interval_classes(const std::vector<StepResidual>& residuals);

// Returns the contents of models/data/intervals.json.
std::string intervals_json(const std::vector<IntervalClass>& classes);

// How often the intervals hold. classes: for each class of one stack with at least 30 steps, the share of its steps in
// its interval. new_sources: the mean over publications of the share of steps in intervals that were made without the
// publication.
struct IntervalCoverage {
  struct Class {
    std::string gpu, software;
    std::size_t rows = 0;
    double inside = 0;
  };
  std::vector<Class> classes;
  double new_sources = 0;
};
IntervalCoverage interval_coverage(const std::vector<StepResidual>& residuals);
std::string coverage_text(const IntervalCoverage& coverage);

}  // namespace orrery
