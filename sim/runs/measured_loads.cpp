#include "sim/runs/measured_loads.h"

#include "models/plan/runtime_sizes.h"
#include "sim/engine/simulate.h"
#include "sim/runs/measured.h"

namespace orrery {
namespace {

Prediction predict_step(const Spec& spec, const Prediction& p, std::span<const RankRun> runs, std::size_t step) {
  Prediction result{.profile = p.profile, .plan = plan_of_step(p.plan, runs, step), .cluster = p.cluster};
  result.costs = costs_of(result.plan, spec, p.profile);
  result.trace = simulate(result.plan, result.costs.timing);
  result.report = make_report(spec, result.plan, result.costs, result.trace, p.profile);
  result.report.plan_hash = p.report.plan_hash;
  return result;
}

// Keeps for each rank the larger of two predicted memory peaks: the one in `most`, and that of a further step in
// `ranks`. first: whether `ranks` is for the first step of a run, in which no optimizer moments exist yet. A peak of
// the first step that includes moments (above first_step_peak) is left out, since it could only arise in a later step
// with the same sizes, which the run did not have.
void keep_larger(std::vector<RankMemory>& most, const std::vector<RankMemory>& ranks, bool first) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const SlotMemory &here = ranks[r].memory, &so_far = most[r].memory;
    if (here.peak > so_far.peak && !(first && here.peak > here.first_step_peak)) most[r] = ranks[r];
  }
}

}  // namespace

Plan plan_of_step(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step) {
  if (!has_runtime_sizes(unfolded)) return unfolded;
  std::vector<std::vector<std::int64_t>> sizes;
  for (const RankRun& run : runs) sizes.push_back(run.steps[step].sizes);
  return with_runtime_sizes(unfolded, sizes);
}

Prediction with_measured_loads(const Spec& spec, const Prediction& prediction, std::span<const RankRun> runs) {
  if (!has_runtime_sizes(prediction.plan)) return prediction;
  const std::size_t median = median_step(step_times(runs));
  Prediction result = predict_step(spec, prediction, runs, median);
  MemoryReport& memory = result.report.memory;
  std::vector<RankMemory> ranks = memory.ranks;
  for (std::size_t step = 0; step < runs.front().steps.size(); ++step)
    keep_larger(ranks, predict_step(spec, prediction, runs, step).report.memory.ranks, step == 0);
  memory.ranks.clear();
  for (const RankMemory& rank : ranks) add_rank(memory, rank);
  return result;
}

}  // namespace orrery
