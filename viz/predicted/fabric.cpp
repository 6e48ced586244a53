#include "viz/predicted/fabric.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "sim/report/link_load.h"

namespace orrery {
namespace {

FabricLoad fabric_load(const LinkLoad& link, std::int64_t steps, Picoseconds step_time) {
  FabricLoad load{link.name, link.of, link.capacity / 1e9, link.mean, link.peak, {}, {link.name, {}, {}, {}}};
  std::vector<std::size_t> series;  // for each group of the link, the series of its kind of communication
  for (const Dimension group : link.groups) {
    const Kind kind = kind_of(group);
    const auto known = std::find(load.kinds.begin(), load.kinds.end(), kind);
    series.push_back(static_cast<std::size_t>(known - load.kinds.begin()));
    if (known != load.kinds.end()) continue;
    load.kinds.push_back(kind);
    load.curve.series.emplace_back(name_of(kind));
  }
  for (std::int64_t i = 0; i < steps; ++i) {
    for (std::size_t sample = 0; sample < link.times.size(); ++sample) {
      load.curve.times.push_back(i * step_time + link.times[sample]);
      std::vector<double> values(load.kinds.size(), 0);
      for (std::size_t g = 0; g < series.size(); ++g) values[series[g]] += link.shares[sample * series.size() + g];
      load.curve.values.insert(load.curve.values.end(), values.begin(), values.end());
    }
  }
  return load;
}

}  // namespace

std::vector<FabricLoad> fabric_of(const Step& step) {
  // Transfers of the steps before and after share the links with those of a step of a run.
  if (step.memory) return {};
  const Prediction& p = step.prediction;
  const std::int64_t steps = p.plan.steps == 1 ? step.spec.steps : 1;
  std::vector<FabricLoad> loads;
  for (const LinkLoad& link : link_loads(p.plan, p.costs.timing, p.trace, p.cluster))
    loads.push_back(fabric_load(link, steps, p.trace.step_time));
  return loads;
}

std::string load_text(const FabricLoad& load, double share) {
  const std::string percent = fmt::format("{:.0f} %", 100 * share);
  if (load.capacity_GBps <= 0) return percent;
  const double rate = share * load.capacity_GBps;
  return fmt::format("{} GB/s, {}", rate < 1000 ? fmt::format("{:.1f}", rate) : grouped(rate), percent);
}

std::vector<std::string> load_at(const FabricLoad& load, Picoseconds time) {
  const std::string capacity = load.capacity_GBps > 0 ? fmt::format(", {} GB/s", grouped(load.capacity_GBps)) : "";
  std::vector<std::string> lines = {fmt::format("the fullest {} ({}){}", load.name, load.of, capacity)};
  const auto after = std::upper_bound(load.curve.times.begin(), load.curve.times.end(), time);
  const auto series = load.kinds.size();
  const double* const values =
      after == load.curve.times.begin()
          ? nullptr
          : load.curve.values.data() + static_cast<std::size_t>(after - load.curve.times.begin() - 1) * series;
  double all = 0;
  for (std::size_t s = 0; values != nullptr && s < series; ++s) all += values[s];
  lines.push_back(fmt::format("at {}: {}", time_text(seconds(time)), load_text(load, all)));
  for (std::size_t s = 0; values != nullptr && s < series; ++s) {
    if (values[s] > 0) lines.push_back(fmt::format("{}: {}", name_of(load.kinds[s]), load_text(load, values[s])));
  }
  return lines;
}

}  // namespace orrery
