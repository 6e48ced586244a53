#pragma once

#include <string>
#include <vector>

#include "sim/published/step_priors.h"

namespace orrery {

// Published steps of one source on one kind of GPU, as those of an unknown stack.
struct SourceSteps {
  std::string source;
  std::vector<StepShifts> slopes;  // for each step, the derivatives of ln(predicted) by the parts' shifts
  // For each stack that the steps may be like, ln(measured / predicted) of each step. The first is the stack where a
  // spec names none.
  std::vector<std::vector<double>> residuals;
};

// The probability that each stack of `steps.residuals` is the one whose factors explain the steps best, of those steps
// whose numbers are in `known`.
std::vector<double> likely_stacks(const SourceSteps& steps, const std::vector<std::size_t>& known,
                                  const StepPriors& priors);

// The priors under which the steps of all sources are most likely (empirical Bayes: type II maximum likelihood, Good
// 1965), each number held near what was judged without steps as strictly as models/data/step_priors.json says. A source
// counts as at most twelve steps for each kind of GPU, so that the largest does not decide. No sources:
// judged_priors().
StepPriors estimate_priors(const std::vector<const SourceSteps*>& sources);

}  // namespace orrery
