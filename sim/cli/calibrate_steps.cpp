// `orrery calibrate --from-steps`: makes a profile from a few measured steps of the user's own stack and cluster.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/output_file.h"
#include "sim/cli/commands.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/published/from_steps.h"
#include "sim/report/interval.h"

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

std::string proposals_text(const std::vector<NextRun>& runs) {
  if (runs.empty()) return "";
  Table t;
  t.columns = {{"measure next, most telling first", "", Align::left},
               {"predicted", "s"},
               {"uncertain by", "%"},
               {"others then less uncertain by", "%"}};
  for (const NextRun& run : runs)
    t.rows.push_back({fmt::format("{} with {}", run.of, run.override), fmt::format("{:.4g}", run.predicted_s),
                      fmt::format("{:.0f}", 100 * run.spread), fmt::format("{:.0f}", 100 * (1 - run.narrower))});
  return '\n' + print(t);
}

}  // namespace

Outcome calibrate_steps_command(const CalibrateOptions& options, const Common& common) {
  const std::vector<StackStep> steps = read_steps(options.from_steps);
  require_alike(steps, options.from_steps);
  const Profile built_in = profile_for(steps.front().spec, "");
  std::vector<StepResponse> responses;
  std::vector<const StepResponse*> all;
  std::vector<double> measured;
  for (const StackStep& step : steps) {
    common.progress(fmt::format("{} of {}: {}", responses.size() + 1, steps.size(), step.id));
    responses.push_back(response_of(step.spec, built_in));
    measured.push_back(step.step_time_s);
  }
  for (const StepResponse& r : responses) all.push_back(&r);
  const StepsFit fit = fit_steps(all, measured);
  const Interval widest = interval_of(steps.front().spec);
  Profile profile;
  profile.name = fmt::format("{}, {}, from {}", steps.front().spec.cluster.gpu.id, steps.front().spec.software.name,
                             std::filesystem::path(options.from_steps).filename().string());
  profile.rest_built_in = true;
  profile.steps = step_fit(responses, measured, steps.front().spec.software.name, {widest.low, widest.high});
  profile.fingerprint = {{"gpu", steps.front().spec.cluster.gpu.id}};
  if (options.out.empty()) return {.text = to_json(profile), .verbatim = true};
  const std::vector<NextRun> next = next_runs(steps, fit, kProposals, common.progress);
  OutputFile file(options.out);
  file.write(to_json(profile));
  file.commit();
  std::string text = print(table_of_steps(steps, responses, fit)) + '\n' + print(table_of_numbers(profile.steps));
  text += fmt::format("\na new step is expected within {:.2f} to {:.2f} times its prediction (80 %)\n",
                      profile.steps.low, profile.steps.high);
  if (steps.size() < kFewSteps)
    text += fmt::format("{} measured steps tell little apart; {} or more are better\n", steps.size(), kFewSteps);
  return {text + proposals_text(next)};
}

}  // namespace orrery
