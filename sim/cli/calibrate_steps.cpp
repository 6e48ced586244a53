// `orrery calibrate --from-steps`: makes a profile from a few measured steps of the user's own stack and cluster.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "models/load/load_spec.h"
#include "sim/cli/commands.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/published/from_steps.h"
#include "sim/published/known_stacks.h"

namespace orrery {
namespace {

constexpr std::size_t kFewSteps = 3, kProposals = 3;

// All steps must be of one kind of GPU and one stack: the factors correct the constants of these.
void require_alike(const std::vector<StackStep>& steps, const std::string& path) {
  const Spec& first = steps.front().spec;
  for (const StackStep& step : steps) {
    if (step.spec.cluster.gpu.id != first.cluster.gpu.id)
      throw Error(fmt::format("{}: {}: measured on {}, the first step on {}; give a file for each kind of GPU", path,
                              step.id, step.spec.cluster.gpu.id, first.cluster.gpu.id));
    if (step.spec.software.name != first.software.name)
      throw Error(fmt::format("{}: {}: ran with {}, the first step with {}; give a file for each stack", path, step.id,
                              step.spec.software.name, first.software.name));
  }
}

Table table_of_steps(const std::vector<StackStep>& steps, const std::vector<StepResponse>& responses,
                     const StepsFit& fit) {
  Table t;
  t.columns = {{"measured step", "", Align::left}, {"measured", "s"}, {"before", "%"}, {"with the profile", "%"}};
  const auto error = [](double ln_predicted, double measured) {
    return fmt::format("{:+.1f}", 100 * (std::exp(ln_predicted) / measured - 1));
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double measured = steps[i].step_time_s;
    t.rows.push_back({steps[i].id, fmt::format("{:.4g}", measured), error(responses[i].built_in, measured),
                      error(responses[i].at(fit.shifts), measured)});
  }
  return t;
}

Table table_of_numbers(const StepFit& fit) {
  Table t;
  t.columns = {{"factor on the time of", "", Align::left}, {"factor", ""}, {"uncertain by", "%"}, {"before", "%"}};
  for (std::size_t i = 0; i < kFitParts; ++i) {
    const StepFit::Number& n = fit.numbers[i];
    t.rows.push_back({std::string(name_of(static_cast<FitPart>(i))), fmt::format("{:.3f}", n.factor),
                      fmt::format("{:.0f}", 100 * n.spread), fmt::format("{:.0f}", 100 * n.prior_spread)});
  }
  return t;
}

// Steps with what is needed to fit the factors of their stack.
struct Responses {
  std::vector<StepResponse> steps;
  std::vector<const StepResponse*> all() const {
    std::vector<const StepResponse*> list;
    for (const StepResponse& r : steps) list.push_back(&r);
    return list;
  }
};

Responses responses_of(const std::vector<StackStep>& steps, const Common& common) {
  Responses r;
  for (const StackStep& step : steps) {
    common.progress(fmt::format("{} of {}: {}", r.steps.size() + 1, steps.size(), step.id));
    r.steps.push_back(response_of(step.spec, profile_for(step.spec, "")));
  }
  return r;
}

// Gives steps whose specs name no stack that of the known ones which they look like, and says so.
std::string take_likely_stack(std::vector<StackStep>& steps, Responses& responses, const Common& common) {
  if (std::ranges::any_of(steps, [](const StackStep& step) { return names_stack(step.spec); })) return "";
  common.progress("which known stack the steps look like");
  const LikelyStack likely = likely_stack(steps, responses.steps);
  const std::string line = fmt::format("no stack is named; of the known ones the steps look like {} ({:.0f} % likely)",
                                       likely.name, 100 * likely.probability);
  if (likely.name == kAnyStack) return line + ", which holds where a spec names none\n\n";
  for (StackStep& step : steps) {
    step.overrides.push_back("software.profile=" + likely.name);
    step.spec = parse_spec(step.text, step.path, step.overrides);
  }
  responses = responses_of(steps, common);
  return line +
         fmt::format(": write software: {} in their specs, or --set software.profile={}\n\n", likely.name, likely.name);
}

}  // namespace

Outcome calibrate_steps_command(const CalibrateOptions& options, const Common& common) {
  std::vector<StackStep> steps = read_steps(options.from_steps);
  require_alike(steps, options.from_steps);
  std::vector<double> measured;
  for (const StackStep& step : steps) measured.push_back(step.step_time_s);
  Responses responses = responses_of(steps, common);
  const std::string likely = take_likely_stack(steps, responses, common);
  const StepsFit fit = fit_steps(responses.all(), measured);
  Profile profile;
  profile.name = fmt::format("{}, {}, from {}", steps.front().spec.cluster.gpu.id, steps.front().spec.software.name,
                             std::filesystem::path(options.from_steps).filename().string());
  profile.rest_built_in = true;
  profile.steps = step_fit(responses.steps, measured, steps.front().spec.software.name);
  profile.fingerprint = {{"gpu", steps.front().spec.cluster.gpu.id}};
  if (options.out.empty()) return {.text = to_json(profile), .verbatim = true};
  const std::vector<NextRun> next = next_runs(steps, fit, kProposals, common.progress);
  OutputFile file(options.out);
  file.write(to_json(profile));
  file.commit();
  std::string text =
      likely + print(table_of_steps(steps, responses.steps, fit)) + '\n' + print(table_of_numbers(profile.steps));
  text += fmt::format("\na new step is expected within {:.2f} to {:.2f} times its prediction (80 %)\n",
                      profile.steps.low, profile.steps.high);
  if (steps.size() < kFewSteps)
    text += fmt::format("{} measured steps tell little apart; {} or more are better\n", steps.size(), kFewSteps);
  return {text + next_runs_text(next)};
}

}  // namespace orrery
