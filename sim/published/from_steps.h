#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/published/step_priors.h"

namespace orrery {

// One measured step of the user's own stack and cluster.
struct StackStep {
  std::string id;  // what messages call the step: its id in the file, or its spec and overrides
  // text of the spec, path that messages name, and overrides, from which variations of the step are made
  std::string text, path;
  std::vector<std::string> overrides;
  Spec spec;
  double step_time_s = 0;  // 0: the step was not measured yet
  std::optional<double> peak_memory_bytes;
};

// Reads measured steps: a JSON list of published measurements (docs/figures.md), or a table (CSV) with the columns spec
// (path of a spec file, beside the table), overrides ("strategy.tensor=4; strategy.micro_batch=2", may be empty),
// seconds, and optionally memory_GiB. Throws Error for a file that is neither, and for a step that cannot be predicted.
std::vector<StackStep> read_steps(const std::string& path);

// How the predicted time of one step depends on the parts' factors: the logarithm of the predicted seconds is that with
// built-in constants plus, for each part, a curve of the logarithm of the part's factor. A curve goes through points
// that were simulated, in straight lines, and on in a straight line beyond them.
struct StepResponse {
  double built_in = 0;
  std::array<std::vector<std::pair<double, double>>, kFitParts> curves;  // (ln factor, change of ln seconds), ascending

  double at(const StepShifts& shifts) const;
  StepShifts slopes(const StepShifts& shifts) const;
};

// Simulates the step with each part slower and faster. profile: the built-in profile of the spec's GPU.
StepResponse response_of(const Spec& spec, const Profile& profile);

// StepsFit is the state of knowledge of the parts' factors after some steps were measured.
struct StepsFit {
  StepShifts shifts{};
  StepCovariance covariance{};
  double noise = 0;  // standard deviation of ln(measured / predicted) that the factors do not explain
  std::int64_t steps = 0;
};

// Finds the expected factors for measured steps: for every level of noise (kNoiseLevels) the least squares of
// ln(measured / predicted) with every factor held near 1 as strictly as the priors say, then their mean, weighted by
// how likely the level makes the steps. No steps: the priors.
StepsFit fit_steps(const std::vector<const StepResponse*>& steps, const std::vector<double>& measured_s,
                   const StepPriors& priors = built_in_priors());

// The variance of ln(measured / predicted) of a new step, with the fit's factors.
double variance_of(const StepResponse& step, const StepsFit& fit);

// The fit as a profile keeps it. The interval is that of a new step, averaged over the measured ones, each predicted
// without itself: steps that scatter much make it wider than that of a known stack.
StepFit step_fit(const std::vector<StepResponse>& steps, const std::vector<double>& measured_s, std::string software,
                 const StepPriors& priors = built_in_priors());

// The state of knowledge that a profile keeps of steps (what they told of several factors together is not kept);
// without steps, the priors.
StepsFit fit_of(const StepFit& kept);

// A change of a step, and what measuring it would tell.
struct NextRun {
  // id of the step, and the overrides ("strategy.tensor=4") that make the new one, "": none
  std::string of, override;
  double predicted_s = 0;
  double spread = 0;  // standard deviation of ln(measured / predicted) of the new step
  // how many times smaller the uncertainty of new steps becomes, on average over all proposed ones (below 1)
  double narrower = 1;
};

// Proposes steps to measure next, the most informative first: those of `steps` that were not measured, and variations
// of all in micro-batch, parallel degrees, sequence and recomputation that fit into memory. say: progress.
std::vector<NextRun> next_runs(const std::vector<StackStep>& steps, const StepsFit& fit, std::size_t most,
                               const std::function<void(std::string_view)>& say);

// The proposals as a table, after an empty line; "" for none.
std::string next_runs_text(const std::vector<NextRun>& runs);

}  // namespace orrery
