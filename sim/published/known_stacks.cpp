#include "sim/published/known_stacks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "sim/report/validated_rows.h"

namespace orrery {

bool names_stack(const Spec& spec) {
  return std::ranges::any_of(spec.origins,
                             [](const Origin& o) { return o.key == "software.profile" && o.from != "default"; });
}

Spec with_stack(const StackStep& step, const std::string& stack) {
  std::vector<std::string> overrides = step.overrides;
  overrides.push_back("software.profile=" + stack);
  return parse_spec(step.text, step.path, overrides);
}

std::optional<double> ln_seconds_with(const StackStep& step, const std::string& stack) {
  try {
    const Spec spec = with_stack(step, stack);
    return std::log(predict_report(spec, profile_for(spec, "")).step_time_s);
  } catch (const Error&) {  // a combination that this stack does not have
    return std::nullopt;
  }
}

LikelyStack likely_stack(const std::vector<StackStep>& steps, const std::vector<StepResponse>& responses,
                         const StepPriors& priors) {
  std::vector<std::string> names = {kAnyStack};
  SourceSteps all{.residuals = {{}}};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    all.slopes.push_back(responses[i].slopes({}));
    all.residuals[0].push_back(std::log(steps[i].step_time_s) - responses[i].built_in);
  }
  for (const std::string& name : validated_stacks()) {
    std::vector<double> residuals;
    for (const StackStep& step : steps) {
      const auto ln = name == kAnyStack ? std::nullopt : ln_seconds_with(step, name);
      if (!ln) break;
      residuals.push_back(std::log(step.step_time_s) - *ln);
    }
    if (residuals.size() < steps.size()) continue;
    names.push_back(name);
    all.residuals.push_back(residuals);
  }
  std::vector<std::size_t> every(steps.size());
  std::iota(every.begin(), every.end(), std::size_t{0});
  const std::vector<double> shares = likely_stacks(all, every, priors);
  const auto best = std::max_element(shares.begin(), shares.end()) - shares.begin();
  return {names[static_cast<std::size_t>(best)], shares[static_cast<std::size_t>(best)]};
}

}  // namespace orrery
