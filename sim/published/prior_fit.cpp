#include "sim/published/prior_fit.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace orrery {
namespace {

constexpr double kMostCounted = 12;  // a source with more steps counts as one of so many
constexpr int kSweeps = 4;
constexpr double kFirstStep = .5;      // of the logarithm of a number, in the first sweep; then half of it, ...
constexpr double kMostProbable = .95;  // of the stack where a spec names none

// The logarithm of the joint density of the steps and of each stack that they may be like.
std::vector<double> ln_stacks(const SourceSteps& steps, const std::vector<std::size_t>& known,
                              const StepPriors& priors) {
  std::vector<StepShifts> slopes;
  for (const std::size_t i : known) slopes.push_back(steps.slopes[i]);
  const double others = std::max<double>(static_cast<double>(steps.residuals.size()) - 1, 1);
  std::vector<double> all;
  for (std::size_t h = 0; h < steps.residuals.size(); ++h) {
    std::vector<double> residuals;
    for (const std::size_t i : known) residuals.push_back(steps.residuals[h][i]);
    const double probability = h == 0 ? priors.own_stack : (1 - priors.own_stack) / others;
    all.push_back(ln_evidence(slopes, residuals, priors) + std::log(probability));
  }
  return all;
}

double ln_posterior(const std::vector<const SourceSteps*>& sources, StepPriors priors) {
  StepPriors judged = judged_priors();
  const std::vector<double*> numbers = numbers_in(priors), before = numbers_in(judged);
  double sum = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double off = std::log(*numbers[i] / *before[i]) / spreads_of_priors()[i];
    sum -= off * off / 2;
  }
  for (const SourceSteps* s : sources) {
    std::vector<std::size_t> every(s->slopes.size());
    std::iota(every.begin(), every.end(), std::size_t{0});
    sum += ln_sum(ln_stacks(*s, every, priors)) * std::min(1., kMostCounted / static_cast<double>(every.size()));
  }
  return sum;
}

}  // namespace

std::vector<double> likely_stacks(const SourceSteps& steps, const std::vector<std::size_t>& known,
                                  const StepPriors& priors) {
  std::vector<double> shares = ln_stacks(steps, known, priors);
  const double all = ln_sum(shares);
  for (double& share : shares) share = std::exp(share - all);
  return shares;
}

StepPriors estimate_priors(const std::vector<const SourceSteps*>& sources) {
  StepPriors best = judged_priors();
  if (sources.empty()) return best;
  double most = ln_posterior(sources, best), step = kFirstStep;
  for (int sweep = 0; sweep < kSweeps; ++sweep, step /= 2) {
    for (std::size_t i = 0; i < numbers_in(best).size(); ++i) {
      for (const double way : {step, -step}) {
        StepPriors tried = best;
        *numbers_in(tried)[i] *= std::exp(way);
        if (tried.own_stack > kMostProbable) continue;
        const double found = ln_posterior(sources, tried);
        if (found <= most) continue;
        most = found;
        best = tried;
        break;
      }
    }
  }
  return best;
}

}  // namespace orrery
