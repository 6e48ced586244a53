#include "sim/published/few_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/published/from_steps.h"
#include "sim/report/interval.h"

namespace orrery {
namespace {

constexpr std::size_t kLeastSteps = 8, kMostSteps = 40, kDraws = 20;
// The stack of a spec that names none (models/load/software.cpp).
constexpr const char* kAnyStack = "megatron-core";
// Intervals of a stack that is not known are at most so wide.
constexpr std::pair<double, double> kWidest = {0.75, 1.35};

// A published step as one of an unknown stack.
struct Unknown {
  const PublishedRow* row = nullptr;
  std::string gpu;
  bool usable = false;
  StepResponse response;
};

Unknown unknown_of(const PublishedRow& row) {
  Unknown u;
  u.row = &row;
  try {
    nlohmann::json text = nlohmann::json::parse(row.spec);
    text["software"] = kAnyStack;
    const Spec spec = parse_spec(text.dump(), row.id);
    u.gpu = spec.cluster.gpu.id;
    u.response = response_of(spec, profile_for(spec, ""));
    u.usable = true;
  } catch (const Error&) {  // validate --published says why a step cannot be predicted
  }
  return u;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// The steps that are drawn of a group, and the others.
struct Draw {
  std::vector<const Unknown*> taken, left;
};

Draw draw_of(const std::vector<const Unknown*>& group, std::size_t drawn, std::mt19937_64& random) {
  std::vector<const Unknown*> order = group;
  for (std::size_t i = 0; i < drawn; ++i) std::swap(order[i], order[i + random() % (order.size() - i)]);
  return {{order.begin(), order.begin() + static_cast<std::ptrdiff_t>(drawn)},
          {order.begin() + static_cast<std::ptrdiff_t>(drawn), order.end()}};
}

double ln_ratio(const Unknown& u, const StepShifts& shifts) {
  return u.response.at(shifts) - std::log(*u.row->step_time_s);
}

// The results of one draw: the errors of the steps that were not drawn, and their intervals.
struct Drawn {
  double one_factor = 0, fitted = 0, covered = 0, width = 0;
};

Drawn judge(const Draw& draw) {
  std::vector<const StepResponse*> steps;
  std::vector<StepResponse> copies;
  std::vector<double> measured, ratios;
  for (const Unknown* u : draw.taken) {
    steps.push_back(&u->response);
    copies.push_back(u->response);
    measured.push_back(*u->row->step_time_s);
    ratios.push_back(ln_ratio(*u, {}));
  }
  const StepsFit fit = fit_steps(steps, measured);
  const StepFit kept = step_fit(copies, measured, kAnyStack, kWidest);
  std::vector<double> one, fitted;
  Drawn result{.width = kept.high / kept.low};
  for (const Unknown* u : draw.left) {
    const double off = ln_ratio(*u, fit.shifts), actual = std::exp(-off);
    one.push_back(std::abs(std::exp(ln_ratio(*u, {}) - mean(ratios)) - 1));
    fitted.push_back(std::abs(std::exp(off) - 1));
    if (kept.low <= actual && actual <= kept.high) result.covered += 1 / static_cast<double>(draw.left.size());
  }
  result.one_factor = mean(one);
  result.fitted = mean(fitted);
  return result;
}

FewSteps judge_group(const std::vector<const Unknown*>& group, std::size_t drawn) {
  FewSteps result{.source = group.front()->row->source, .gpu = group.front()->gpu, .rows = group.size()};
  std::vector<double> before, one, fitted, covered, width;
  for (const Unknown* u : group) before.push_back(std::abs(std::exp(ln_ratio(*u, {})) - 1));
  std::mt19937_64 random(group.size());
  for (std::size_t i = 0; i < kDraws; ++i) {
    const Drawn d = judge(draw_of(group, drawn, random));
    one.push_back(d.one_factor);
    fitted.push_back(d.fitted);
    covered.push_back(d.covered);
    width.push_back(d.width);
  }
  result.before = mean(before);
  result.one_factor = median(one);
  result.fitted = median(fitted);
  result.worst = *std::max_element(fitted.begin(), fitted.end());
  result.covered = mean(covered);
  result.width = median(width);
  return result;
}

// The steps to judge: those that count, at most kMostSteps of a source, evenly spaced.
std::vector<const PublishedRow*> sample_of(const std::vector<PublishedRow>& rows) {
  std::map<std::string, std::vector<const PublishedRow*>> by_source;
  for (const PublishedRow& r : rows) {
    if (r.doubtful.empty() && r.step_time_s) by_source[r.source].push_back(&r);
  }
  std::vector<const PublishedRow*> all;
  for (const auto& [source, list] : by_source) {
    const std::size_t taken = std::min(list.size(), kMostSteps);
    for (std::size_t i = 0; i < taken; ++i) all.push_back(list[i * list.size() / taken]);
  }
  return all;
}

}  // namespace

std::vector<FewSteps> judge_few_steps(const std::vector<PublishedRow>& rows, std::size_t drawn,
                                      const ForEach& for_each) {
  const std::vector<const PublishedRow*> sample = sample_of(rows);
  std::vector<Unknown> all(sample.size());
  for_each(all.size(), [&](std::size_t i) { all[i] = unknown_of(*sample[i]); });
  std::map<std::pair<std::string, std::string>, std::vector<const Unknown*>> groups;
  for (const Unknown& u : all) {
    if (u.usable) groups[{u.row->source, u.gpu}].push_back(&u);
  }
  std::vector<FewSteps> result;
  for (const auto& [key, group] : groups) {
    if (group.size() >= std::max(kLeastSteps, drawn + 1)) result.push_back(judge_group(group, drawn));
  }
  return result;
}

Table few_steps_table(const std::vector<FewSteps>& judged, std::size_t drawn) {
  const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  Table t;
  t.columns = {{fmt::format("unknown stack, {} steps known", drawn), "", Align::left},
               {"GPU", "", Align::left},
               {"rows", ""},
               {"none known", "%"},
               {"one factor", "%"},
               {"fitted", "%"},
               {"worst draw", "%"},
               {"in interval", "%"},
               {"high / low", ""}};
  FewSteps all;
  const auto n = static_cast<double>(judged.size());
  for (const FewSteps& f : judged) {
    t.rows.push_back({f.source, f.gpu, fmt::format("{}", f.rows), percent(f.before), percent(f.one_factor),
                      percent(f.fitted), percent(f.worst), percent(f.covered), fmt::format("{:.2f}", f.width)});
    all.rows += f.rows;
    all.before += f.before / n;
    all.one_factor += f.one_factor / n;
    all.fitted += f.fitted / n;
    all.worst += f.worst / n;
    all.covered += f.covered / n;
    all.width += f.width / n;
  }
  if (!judged.empty())
    t.rows.push_back({"mean", "", fmt::format("{}", all.rows), percent(all.before), percent(all.one_factor),
                      percent(all.fitted), percent(all.worst), percent(all.covered), fmt::format("{:.2f}", all.width)});
  return t;
}

std::string few_steps_json(const std::vector<FewSteps>& judged, std::size_t drawn) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const FewSteps& f : judged)
    list.push_back({{"source", f.source},
                    {"gpu", f.gpu},
                    {"rows", f.rows},
                    {"before", f.before},
                    {"one_factor", f.one_factor},
                    {"fitted", f.fitted},
                    {"worst", f.worst},
                    {"covered", f.covered},
                    {"width", f.width}});
  const nlohmann::ordered_json whole = {{"schema", "orrery.few_steps/1"}, {"steps", drawn}, {"sources", list}};
  return whole.dump(2) + '\n';
}

}  // namespace orrery
