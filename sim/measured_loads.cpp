#include "sim/measured_loads.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "sim/measured.h"

namespace orrery {
namespace {

// Rows that a rank's experts got in a step, by layer and micro-batch.
std::vector<double> received_by(const Plan& plan, const RankRun& run, std::size_t step) {
  std::vector<double> rows;
  std::size_t at = 0;
  for (const Frame& f : plan.frames) {
    if (plan.slots[f.slot].representative != run.rank) continue;
    for (const RuntimeSize& size : plan.blocks[f.block].runtime_sizes) {
      const std::vector<std::int64_t>& sizes = run.steps[step].sizes;
      if (at < sizes.size() && size.name == "received") rows.push_back(static_cast<double>(sizes[at]));
      ++at;
    }
  }
  return rows;
}

// Of one group of ranks, in one step.
MeasuredLoads loads_of(const std::vector<std::vector<double>>& received) {
  const auto members = static_cast<double>(received.size());
  double busiest = 0, all = 0, most = 0;
  for (const std::vector<double>& rows : received) {
    const double sum = std::accumulate(rows.begin(), rows.end(), 0.0);
    all += sum;
    most = std::max(most, sum);
  }
  for (std::size_t i = 0; i < received.front().size(); ++i) {
    double of_layer = 0;
    for (const std::vector<double>& rows : received) of_layer = std::max(of_layer, rows[i]);
    busiest += of_layer;
  }
  return all > 0 ? MeasuredLoads{busiest * members / all, most * members / all} : MeasuredLoads{};
}

Prediction predict_with(Spec spec, double imbalance, const std::string& profile) {
  spec.model.moe->imbalance = imbalance;
  spec.model.moe->zipf.reset();
  spec.model.moe->loads_file.clear();
  return predict(spec, true, profile);
}

}  // namespace

MeasuredLoads measured_loads(const Plan& unfolded, std::span<const RankRun> runs) {
  MeasuredLoads loads;
  const std::size_t median = median_step(step_times(runs));
  for (const auto& group : unfolded.dimensions[static_cast<std::size_t>(Dimension::expert)].groups) {
    for (std::size_t step = 0; step < runs.front().steps.size(); ++step) {
      std::vector<std::vector<double>> received;
      for (const std::int32_t rank : group)
        received.push_back(received_by(unfolded, runs[static_cast<std::size_t>(rank)], step));
      const MeasuredLoads here = loads_of(received);
      loads.memory = std::max(loads.memory, here.memory);
      if (step == median) loads.step = std::max(loads.step, here.step);
    }
  }
  return loads;
}

Prediction with_measured_loads(const Spec& spec, const Prediction& prediction, std::span<const RankRun> runs,
                               const std::string& profile) {
  const MeasuredLoads loads = measured_loads(prediction.plan, runs);
  if (!spec.model.moe || loads.memory <= 1 || spec.strategy.context > 1) return prediction;
  Prediction result = predict_with(spec, loads.step, profile);
  result.report.memory = predict_with(spec, loads.memory, profile).report.memory;
  std::map<std::int64_t, SlotMemory> busiest;  // by stage
  auto& ranks = result.report.memory.ranks;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    SlotMemory& m = busiest[result.plan.slots[r].stage];
    if (ranks[r].memory.peak > m.peak) m = ranks[r].memory;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) ranks[r].memory = busiest.at(result.plan.slots[r].stage);
  return result;
}

}  // namespace orrery
