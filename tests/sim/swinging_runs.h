#pragma once

// Steps of a model with experts whose router changes its choices from step to step, each simulated with the resulting
// sizes and the times of a profile.

#include "models/load/load_spec.h"
#include "models/plan/runtime_sizes.h"
#include "models/planner/make_plan.h"
#include "sim/cost/costs.h"
#include "tests/sim/cpu_profile.h"
#include "tests/sim/fake_runs.h"

namespace orrery {

// Two ranks, two layers, three micro-batches of 256 tokens. moe: further keys.
inline Spec swinging_spec(const std::string& moe) {
  return parse_spec(
      "model: {name: moe, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, moe: {experts: 4, top_k: 2, "
      "feed_forward: 256" +
          moe +
          "}}\nsequence: 128\ncluster: {node: localhost}\ngpus: 2\nsoftware: orrery\n"
          "strategy: {precision: fp32, gradient_precision: fp32, expert: 2, data: 2, micro_batch: 2, global_batch: 12, "
          "overlap: {gradient_reduce: false}}\n",
      "swinging.yaml");
}

inline Profile swinging_profile(const Plan& plan) {
  Profile p = cpu_profile(plan);
  p.measured.transfers.push_back({"all_to_all", 2, {{4, 10e-6}, {1'000'000, 1010e-6}}});
  return p;
}

// Runtime sizes of uneven routing: the total is fixed, but no rank sends or receives the same number twice. capacity: a
// rank sends at most the planned number.
inline std::vector<std::vector<std::int64_t>> swinging_sizes(const Plan& unfolded, std::uint64_t step) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const RankClass& slot : unfolded.classes) sizes.push_back(planned_sizes(unfolded, slot));
  for (std::size_t i = 0; i < sizes[0].size(); i += 3) {
    const std::int64_t all = 2 * sizes[0][i];
    const auto part = static_cast<std::int64_t>(scrambled(step, i) % 100);
    sizes[0][i + 1] = sizes[0][i + 2] = all * part / 100;
    sizes[1][i + 1] = sizes[1][i + 2] = all - sizes[0][i + 1];
  }
  return sizes;
}

inline std::vector<RankRun> swinging_runs(const Spec& spec, const Profile& profile, std::size_t steps) {
  const Plan folded = make_plan(spec), unfolded = unfold(folded);
  std::vector<RankRun> runs;
  Picoseconds begin = 0;
  for (std::size_t k = 0; k < steps; ++k) {
    const auto sizes = swinging_sizes(unfolded, k);
    const Plan plan = with_runtime_sizes(unfolded, sizes);
    const Trace trace = simulate(plan, costs_of(plan, spec, profile).timing);
    const std::vector<RankRun> one = runs_of(plan, trace, plan_hash(folded), 1);
    if (runs.empty()) runs = one;
    for (std::size_t r = 0; r < one.size(); ++r) {
      MeasuredStep step = one[r].steps[0];
      step.sizes = sizes[r];
      step.begin += begin;
      step.end += begin;
      for (MeasuredSpan& s : step.spans) s = {s.issued + begin, s.entered + begin, s.ended + begin};
      if (k == 0) runs[r].steps.clear();
      runs[r].steps.push_back(std::move(step));
    }
    begin += trace.step_time;
  }
  return runs;
}

}  // namespace orrery
