#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/print/table.h"
#include "sim/published/fit.h"
#include "sim/published/step_priors.h"

namespace orrery {

// How well the published steps of one source on one kind of GPU are predicted as those of an unknown stack: with the
// constants of the stack that holds where a spec names none, or of the known one (but for their own, unless it is the
// default) that a few of the source's steps look like, corrected by these steps (from_steps.h, known_stacks.h). What
// the steps' specs say of the stack beside its name is kept. Priors are those of the other sources.
struct FewSteps {
  std::string source, gpu;
  std::size_t rows = 0;  // number of steps of which the few are drawn, and the others predicted
  // Means of |predicted / measured - 1|. before: with no step; then medians over the draws of the mean over the steps
  // that were not drawn: one_factor: all predictions times the mean ratio of the drawn steps; fitted: with the factors
  // that calibrate --from-steps finds. worst: the worst draw's mean with these factors.
  double before = 0, one_factor = 0, fitted = 0, worst = 0;
  double covered = 0;  // share of the steps that were not drawn whose time was in the interval
  double width = 0;    // median of the interval's upper end over its lower end
};

// The judged groups of steps, and the priors of all their sources together (models/data/step_priors.json).
struct JudgedSteps {
  std::vector<FewSteps> groups;
  StepPriors priors;
  std::vector<std::string> sources;  // sorted
};

// Draws `drawn` steps of each source and kind of GPU, 20 times (the same draws every time), of those with at least
// eight steps. Of sources with more than forty, forty are taken. Doubtful steps do not count.
JudgedSteps judge_few_steps(const std::vector<PublishedRow>& rows, std::size_t drawn, const ForEach& for_each);

Table few_steps_table(const std::vector<FewSteps>& judged, std::size_t drawn);
// The table as a section of a Markdown page (docs/published.md).
std::string few_steps_page(const std::vector<FewSteps>& judged, std::size_t drawn);
std::string few_steps_json(const std::vector<FewSteps>& judged, std::size_t drawn);

}  // namespace orrery
