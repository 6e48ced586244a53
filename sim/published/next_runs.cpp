// This file proposes steps to measure next.
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/published/from_steps.h"

namespace orrery {
namespace {

constexpr std::int64_t kLeastSequence = 512;
using Overrides = std::vector<std::string>;

// The overrides that set a degree of parallelism, and the number of data ranks that keeps the number of GPUs; none if
// that number is no integer.
void add_degree(const Spec& spec, const char* key, std::int64_t from, std::int64_t to, std::vector<Overrides>& all) {
  const std::int64_t ranks = spec.strategy.data * from;
  if (ranks % to != 0) return;
  all.push_back({fmt::format("strategy.{}={}", key, to), fmt::format("strategy.data={}", ranks / to)});
}

// The changes of a step that are tried: each doubles or halves one size, or changes what backward runs again.
std::vector<Overrides> changes_of(const Spec& spec) {
  std::vector<Overrides> all;
  const Strategy& s = spec.strategy;
  const auto sized = [&](const char* key, std::int64_t value, std::int64_t least) {
    all.push_back({fmt::format("{}={}", key, 2 * value)});
    if (value % 2 == 0 && value / 2 >= least) all.push_back({fmt::format("{}={}", key, value / 2)});
  };
  sized("strategy.micro_batch", s.micro_batch, 1);
  sized("sequence", spec.sequence, kLeastSequence);
  for (const auto& [key, degree] : {std::pair("tensor", s.tensor), std::pair("pipeline", s.pipeline)}) {
    add_degree(spec, key, degree, 2 * degree, all);
    if (degree % 2 == 0) add_degree(spec, key, degree, degree / 2, all);
  }
  all.push_back({s.recompute.any() ? "strategy.recompute=none" : "strategy.recompute=full"});
  return all;
}

// A step that could be measured: what it is called, and how its time depends on the parts' factors.
struct Candidate {
  NextRun run;
  StepResponse response;
};

// The variance of `step` once `other` has been measured too.
double variance_after(const StepResponse& step, const StepResponse& other, const StepsFit& fit) {
  const auto covariance_with = [&](const StepShifts& a, const StepShifts& b) {
    double sum = 0;
    for (std::size_t i = 0; i < kFitParts; ++i) {
      for (std::size_t j = 0; j < kFitParts; ++j) sum += a[i] * fit.covariance[i][j] * b[j];
    }
    return sum;
  };
  const StepShifts a = step.slopes(fit.shifts), b = other.slopes(fit.shifts);
  const double shared = covariance_with(a, b);
  return variance_of(step, fit) - shared * shared / (covariance_with(b, b) + fit.noise * fit.noise);
}

// Returns the step with a change, unless it is impossible, or its plan is known already: `known` has the hashes of
// plans that were measured or returned.
std::optional<Candidate> candidate(const StackStep& step, const Overrides& change, const StepsFit& fit,
                                   std::set<std::string>& known) {
  try {
    Overrides overrides = step.overrides;
    overrides.insert(overrides.end(), change.begin(), change.end());
    const Spec spec = parse_spec(step.text, step.path, overrides);
    const Profile profile = profile_for(spec, "");
    const Report report = predict(spec, profile).report;
    if (!report.memory.fits || !known.insert(report.plan_hash).second) return std::nullopt;
    Candidate c{{step.id, fmt::format("{}", fmt::join(change, " "))}, response_of(spec, profile)};
    c.run.predicted_s = std::exp(c.response.at(fit.shifts));
    c.run.spread = std::sqrt(variance_of(c.response, fit));
    return c;
  } catch (const Error&) {  // a combination that is not possible is no proposal
    return std::nullopt;
  }
}

}  // namespace

std::vector<NextRun> next_runs(const std::vector<StackStep>& steps, const StepsFit& fit, std::size_t most,
                               const std::function<void(std::string_view)>& say) {
  std::vector<Candidate> all;
  std::set<std::string> known;
  for (const StackStep& step : steps) {
    if (step.step_time_s > 0) known.insert(plan_hash(make_plan(step.spec)));
  }
  for (const StackStep& step : steps) {
    std::vector<Overrides> changes = changes_of(step.spec);
    if (step.step_time_s <= 0) changes.insert(changes.begin(), Overrides{});
    for (const Overrides& change : changes) {
      say(fmt::format("what to measure next: {} {}", step.id, fmt::join(change, " ")));
      if (const auto found = candidate(step, change, fit, known)) all.push_back(*found);
    }
  }
  for (Candidate& c : all) {
    double before = 0, after = 0;
    for (const Candidate& other : all) {
      before += std::sqrt(variance_of(other.response, fit));
      after += std::sqrt(variance_after(other.response, c.response, fit));
    }
    c.run.narrower = after / before;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.run.narrower < b.run.narrower; });
  std::vector<NextRun> result;
  for (const Candidate& c : all) {
    if (result.size() < most) result.push_back(c.run);
  }
  return result;
}

std::string next_runs_text(const std::vector<NextRun>& runs) {
  if (runs.empty()) return "";
  Table t;
  t.columns = {{"measure next, most telling first", "", Align::left},
               {"predicted", "s"},
               {"uncertain by", "%"},
               {"others then less uncertain by", "%"}};
  for (const NextRun& run : runs)
    t.rows.push_back({run.of + (run.override.empty() ? " as it is" : " with " + run.override),
                      fmt::format("{:.4g}", run.predicted_s), fmt::format("{:.0f}", 100 * run.spread),
                      fmt::format("{:.0f}", 100 * (1 - run.narrower))});
  return '\n' + print(t);
}

}  // namespace orrery
