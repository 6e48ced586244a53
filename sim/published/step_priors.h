#pragma once

#include <array>
#include <string>
#include <vector>

#include "models/cost/step_fit.h"

namespace orrery {

// The natural logarithms of the factors on the times of a step's parts (FitPart); 0: built-in constants.
using StepShifts = std::array<double, kFitParts>;
// The covariance of the parts' shifts.
using StepCovariance = std::array<std::array<double, kFitParts>, kFitParts>;

// StepPriors is what is known of a stack before any of its steps is measured: how far its factors lie from 1, and how
// much its steps scatter about what factors explain. Shifts are normal with mean 0; the noise of a stack is log-normal,
// so that steps of a new stack have heavier tails than a normal distribution.
struct StepPriors {
  StepShifts spreads{};     // standard deviation of each part's shift
  double shared = 0;        // standard deviation of a shift that all parts share
  double noise = 0;         // median over stacks of the standard deviation of ln(measured / predicted)
  double noise_spread = 0;  // standard deviation over stacks of the logarithm of that noise
  // Probability that the stack which holds where a spec names none (megatron-core) is the right one to correct; the
  // other known stacks share the rest.
  double own_stack = 0;

  bool operator==(const StepPriors&) const = default;
};

// The priors of models/data/step_priors.json: `value` as estimated over published steps; `prior` without these.
const StepPriors& built_in_priors();
const StepPriors& judged_priors();
// Standard deviation of the logarithm of every number's estimate about judged_priors(), in the order of numbers_in().
const std::vector<double>& spreads_of_priors();

// The numbers of the priors, in the order of models/data/step_priors.json.
std::vector<double*> numbers_in(StepPriors& priors);

// Returns the contents of models/data/step_priors.json with new values, estimated on these sources.
std::string step_priors_json(const StepPriors& estimated, const std::vector<std::string>& sources);

StepCovariance covariance_of(const StepPriors& priors);

// The levels of noise for which steps are explained one after another, and the probability of each with the priors.
inline constexpr std::array<double, 10> kNoiseLevels = {.01, .016, .025, .04, .063, .1, .16, .25, .4, .63};
std::array<double, kNoiseLevels.size()> noise_weights(const StepPriors& priors);

// The logarithm of the probability density of residuals, ln(measured / predicted) of steps of one stack, up to a
// constant of their number. slopes: for each step, the derivatives of ln(predicted) by the parts' shifts.
double ln_evidence(const std::vector<StepShifts>& slopes, const std::vector<double>& residuals,
                   const StepPriors& priors);

// ln(sum of exp(x)).
double ln_sum(const std::vector<double>& logarithms);

}  // namespace orrery
