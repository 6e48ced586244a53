#include "sim/published/interval_fit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

constexpr std::size_t kClassRows = 10;     // the fewest steps of a class
constexpr std::size_t kJudgedRows = 30;    // the fewest steps of a class whose coverage is printed
constexpr double kEightyPercent = 1.2816;  // standard deviations on each side of the mean that hold 80 %
constexpr double kOneDeviation = 0.68;     // share of a normal distribution within one standard deviation
// Publications that are added to a class: two to the variance between publications, one of mean 0 to the mean.
constexpr double kAddedSpread = 2, kAddedMean = 1;
constexpr std::size_t kFewestOfSpread = 3, kFewestWithin = 5;

constexpr std::string_view kAboutIntervals =
    "80 % intervals of a step's time as multiples of the prediction, written by `orrery validate --published FILE... "
    "--leave-one-out --intervals FILE` from the errors of published steps that are not doubtful, each predicted with "
    "constants that were fitted without its publication. Classes: kind of GPU and software; of fewer than 10 steps, or "
    "of a stack that is not known, the kind of GPU alone; else all. Variance between publications and within one "
    "(sim/published/interval_fit.h). An interval always holds the prediction itself.";

using Key = std::pair<std::string, std::string>;  // GPU architecture, software

// The steps of one publication in one class: median of ln ratio, and the standard deviation around it.
struct SourceErrors {
  double middle = 0, within = 0;
  std::size_t rows = 0;
};

// The value that a share of the sorted values does not exceed.
double at_share(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// The publications of each kind of GPU and stack. Publications of fewer than kFewestWithin steps have the others'
// middle deviation.
std::map<Key, std::vector<SourceErrors>> errors_by_stack(const std::vector<StepResidual>& residuals) {
  std::map<std::pair<Key, std::string>, std::vector<double>> rows;
  for (const StepResidual& r : residuals) rows[{{r.gpu, r.software}, r.source}].push_back(std::log(r.ratio));
  std::map<Key, std::vector<SourceErrors>> result;
  std::vector<double> deviations;
  for (const auto& [key, values] : rows) {
    SourceErrors s{middle_of(values), 0, values.size()};
    std::vector<double> off;
    for (const double v : values) off.push_back(std::abs(v - s.middle));
    if (values.size() >= kFewestWithin) {
      s.within = at_share(off, 0.8) / kEightyPercent;
      deviations.push_back(s.within);
    }
    result[key.first].push_back(s);
  }
  const double usual = deviations.empty() ? 0 : middle_of(deviations);
  for (auto& [key, sources] : result) {
    for (SourceErrors& s : sources) s.within = s.rows < kFewestWithin ? usual : s.within;
  }
  return result;
}

// The spread of all publications, and the middle deviation within one.
struct Prior {
  double between = 0, within = 0;
};

Prior prior_of(const std::map<Key, std::vector<SourceErrors>>& stacks) {
  std::vector<double> between, within;
  for (const auto& [key, sources] : stacks) {
    for (const SourceErrors& s : sources) {
      if (s.rows >= kFewestOfSpread) between.push_back(std::abs(s.middle));
      if (s.rows >= kFewestWithin) within.push_back(s.within);
    }
  }
  if (between.empty() || within.empty()) return {};
  return {at_share(between, kOneDeviation), middle_of(within)};
}

Interval interval_over(const std::vector<SourceErrors>& sources, bool equally, const Prior& prior) {
  const auto n = static_cast<double>(sources.size());
  std::vector<double> weights;
  for (const SourceErrors& s : sources) weights.push_back(equally ? 1 : std::sqrt(static_cast<double>(s.rows)));
  const double scale = n / std::accumulate(weights.begin(), weights.end(), 0.0);
  double mean = 0, between = kAddedSpread * prior.between * prior.between, within = prior.within * prior.within;
  for (std::size_t i = 0; i < sources.size(); ++i) mean += scale * weights[i] * sources[i].middle / (n + kAddedMean);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    between += scale * weights[i] * std::pow(sources[i].middle - mean, 2);
    within += scale * weights[i] * std::pow(sources[i].within, 2);
  }
  const double variance = between / (n + kAddedSpread) * (1 + 1 / n) + within / (n + 1);
  const double half = kEightyPercent * std::sqrt(variance);
  return {std::min(1.0, std::exp(mean - half)), std::max(1.0, std::exp(mean + half))};
}

// The class of a step: the first that there is of its stack on its GPU, of its GPU, and of all.
const IntervalClass* class_of(const std::vector<IntervalClass>& classes, const StepResidual& step) {
  for (const Key& key : {Key(step.gpu, step.software), Key(step.gpu, ""), Key("", "")}) {
    for (const IntervalClass& c : classes) {
      if (c.gpu == key.first && c.software == key.second) return &c;
    }
  }
  return nullptr;
}

bool holds_step(const std::vector<IntervalClass>& classes, const StepResidual& step) {
  const IntervalClass* c = class_of(classes, step);
  return c != nullptr && c->interval.low <= step.ratio && step.ratio <= c->interval.high;
}

}  // namespace

std::vector<StepResidual> residuals(const std::vector<PublishedCase>& cases, const Refit& fit) {
  std::vector<StepResidual> result;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const PublishedCase& c = cases[i];
    if (!c.reason.empty() || !c.row.doubtful.empty() || !c.row.step_time_s) continue;
    const double ratio = *c.row.step_time_s / c.step_time_s;
    result.push_back({c.architecture, c.software, c.row.source, fit.ratios[i].value_or(ratio)});
  }
  return result;
}

std::vector<IntervalClass> interval_classes(const std::vector<StepResidual>& residuals) {
  const std::map<Key, std::vector<SourceErrors>> stacks = errors_by_stack(residuals);
  const Prior prior = prior_of(stacks);
  std::map<Key, std::vector<SourceErrors>> groups;
  for (const auto& [key, sources] : stacks) {
    for (const Key& group : {key, Key(key.first, ""), Key("", "")})
      groups[group].insert(groups[group].end(), sources.begin(), sources.end());
  }
  std::vector<IntervalClass> classes;
  for (const auto& [key, sources] : groups) {
    std::size_t rows = 0;
    for (const SourceErrors& s : sources) rows += s.rows;
    if (rows >= kClassRows || key.first.empty())
      classes.push_back({key.first, key.second, rows, interval_over(sources, key.second.empty(), prior)});
  }
  return classes;
}

std::string intervals_json(const std::vector<IntervalClass>& classes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  const auto rounded = [](double x) { return std::round(x * 1000) / 1000; };
  for (const IntervalClass& c : classes)
    list.push_back({{"gpu", c.gpu},
                    {"software", c.software},
                    {"rows", c.rows},
                    {"low", rounded(c.interval.low)},
                    {"high", rounded(c.interval.high)}});
  const nlohmann::ordered_json file = {
      {"_source", "residuals of other people's published steps"}, {"about", kAboutIntervals}, {"classes", list}};
  return file.dump(1) + '\n';
}

IntervalCoverage interval_coverage(const std::vector<StepResidual>& residuals) {
  const std::vector<IntervalClass> all = interval_classes(residuals);
  std::map<Key, IntervalCoverage::Class> classes;
  std::set<std::string> sources;
  for (const StepResidual& r : residuals) {
    sources.insert(r.source);
    IntervalCoverage::Class& c = classes[{r.gpu, r.software}];
    ++c.rows;
    c.inside += holds_step(all, r) ? 1 : 0;
  }
  IntervalCoverage result;
  for (auto& [key, c] : classes) {
    if (c.rows >= kJudgedRows)
      result.classes.push_back({key.first, key.second, c.rows, c.inside / static_cast<double>(c.rows)});
  }
  for (const std::string& source : sources) {
    std::vector<StepResidual> others;
    for (const StepResidual& r : residuals) {
      if (r.source != source) others.push_back(r);
    }
    const std::vector<IntervalClass> without = interval_classes(others);
    double rows = 0, inside = 0;
    for (const StepResidual& r : residuals) {
      if (r.source != source) continue;
      ++rows;
      inside += holds_step(without, r) ? 1 : 0;
    }
    result.new_sources += inside / rows / static_cast<double>(sources.size());
  }
  return result;
}

std::string coverage_text(const IntervalCoverage& coverage) {
  std::string text = fmt::format(
      "80 % intervals, with constants fitted without a source: {:.0f} % of a source's steps lie in intervals made "
      "without it (mean over sources)",
      100 * coverage.new_sources);
  for (const IntervalCoverage::Class& c : coverage.classes)
    text += fmt::format("; {:.0f} % of the {} steps of {} on {} in their class's", 100 * c.inside, c.rows, c.software,
                        c.gpu);
  return text + ".\n";
}

}  // namespace orrery
