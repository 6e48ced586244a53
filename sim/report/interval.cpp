#include "sim/report/interval.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <nlohmann/json.hpp>

#include "models/base/data.h"

namespace orrery {
namespace {

// The quantiles of (measured step time / predicted step time) that bound the interval. The interval is meant to hold 80
// % of new steps; it holds a little more of the published steps, because constants were chosen with these steps known.
constexpr double kLow = 0.085, kHigh = 0.915;
// Published steps with the same GPU architecture, the same software and about as many nodes get an interval of their
// own if there are at least this many.
constexpr std::size_t kEnough = 10;

constexpr std::string_view kAbout =
    "80 % intervals of a step's time as multiples of the prediction: quantiles (8.5 and 91.5 %) of measured / "
    "predicted "
    "over like rows of published measurements that are not doubtful; written by `orrery validate --published FILE... "
    "--intervals FILE`. Like rows: same kind of GPU, same software, same class of nodes (one, few = 2 to 8, many); "
    "with "
    "fewer than 10 of them, without the nodes; else every source of the kind of GPU with the same weight, as for a "
    "stack "
    "that is not known; else every source. An interval always holds the prediction itself. The rows are those that "
    "constants were fitted on, but where another stack's stand in.";

// The interval of GPUs of which no measured step was ever compared with a prediction (Gpu::uncalibrated). Sources that
// no constant had been adjusted to were off by 13 to 24 % on average, slower more often than faster.
constexpr Interval kUnmeasuredGpu = {0.75, 1.35};

std::string scale_of(std::int64_t nodes) { return nodes <= 1 ? "one" : nodes <= 8 ? "few" : "many"; }

struct Weighted {
  double ratio, weight;
};

// Returns the quantile at `share`: the ratio below which this share of the total weight lies, interpolated
// (geometrically) between neighbouring ratios.
double quantile(const std::vector<Weighted>& sorted, double share) {
  double total = 0, below = 0;
  for (const Weighted& w : sorted) total += w.weight;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double middle = (below + sorted[i].weight / 2) / total;
    if (middle >= share) {
      if (i == 0) return sorted[0].ratio;
      const double before = (below - sorted[i - 1].weight / 2) / total;
      const double part = (share - before) / (middle - before);
      return std::exp(std::log(sorted[i - 1].ratio) * (1 - part) + std::log(sorted[i].ratio) * part);
    }
    below += sorted[i].weight;
  }
  return sorted.back().ratio;
}

Interval interval_over(std::vector<Weighted> rows) {
  std::sort(rows.begin(), rows.end(), [](const Weighted& a, const Weighted& b) { return a.ratio < b.ratio; });
  return {std::min(1.0, quantile(rows, kLow)), std::max(1.0, quantile(rows, kHigh))};
}

struct Class {
  std::string gpu, software, nodes;                // GPU architecture, software, range of node counts; "" = any
  auto operator<=>(const Class&) const = default;  // NOLINT(modernize-use-nullptr)
};

}  // namespace

Interval interval_of(const Spec& spec) {
  const std::string gpu(name_of(spec.cluster.gpu.architecture));
  const std::string& software = spec.software.name;
  const nlohmann::json file = nlohmann::json::parse(data_file("intervals.json"));
  if (spec.cluster.gpu.architecture == Architecture::other) return {};
  if (spec.cluster.gpu.uncalibrated) return kUnmeasuredGpu;
  for (const Class& c : {Class{gpu, software, scale_of(spec.cluster.nodes)}, Class{gpu, software, ""},
                         Class{gpu, "", ""}, Class{"", "", ""}}) {
    for (const nlohmann::json& e : file.at("classes")) {
      if (e.at("gpu") == c.gpu && e.at("software") == c.software && e.at("nodes") == c.nodes)
        return {e.at("low").get<double>(), e.at("high").get<double>()};
    }
  }
  return {};
}

std::string intervals_json(const std::vector<StepResidual>& residuals) {
  // number of published steps; the key is (GPU architecture, publication)
  std::map<std::pair<std::string, std::string>, double> of_source;
  for (const StepResidual& r : residuals) ++of_source[{r.gpu, r.source}];
  std::map<Class, std::vector<Weighted>> classes;
  for (const StepResidual& r : residuals) {
    const double each = 1 / of_source[{r.gpu, r.source}];
    classes[{r.gpu, r.software, scale_of(r.nodes)}].push_back({r.ratio, 1});
    classes[{r.gpu, r.software, ""}].push_back({r.ratio, 1});
    classes[{r.gpu, "", ""}].push_back({r.ratio, each});
    classes[{"", "", ""}].push_back({r.ratio, each});
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto rounded = [](double x) { return std::round(x * 1000) / 1000; };
  for (const auto& [c, rows] : classes) {
    if (rows.size() < kEnough && !c.gpu.empty()) continue;
    const Interval i = interval_over(rows);
    list.push_back({{"gpu", c.gpu},
                    {"software", c.software},
                    {"nodes", c.nodes},
                    {"rows", rows.size()},
                    {"low", rounded(i.low)},
                    {"high", rounded(i.high)}});
  }
  const nlohmann::ordered_json file = {
      {"_source", "residuals of other people's published steps"}, {"about", kAbout}, {"classes", list}};
  return file.dump(1) + '\n';
}

}  // namespace orrery
