#include "sim/published/few_steps.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "sim/print/table.h"
#include "sim/published/from_steps.h"
#include "sim/published/known_stacks.h"
#include "sim/published/prior_fit.h"
#include "sim/report/validated_rows.h"

namespace orrery {
namespace {

constexpr std::size_t kLeastSteps = 8, kMostSteps = 40, kDraws = 20;

// A published step as one of an unknown stack.
struct Unknown {
  const PublishedRow* row = nullptr;
  std::string gpu, own_stack;
  bool usable = false;
  StepResponse response;
  std::map<std::string, double> as_stack;  // ln of the predicted seconds with other stacks that have such a step
};

// The stack's name is taken from the row; what its spec says of the stack beside stays, as a user's spec says it too.
Unknown unknown_of(const PublishedRow& row) {
  Unknown u;
  u.row = &row;
  try {
    u.own_stack = parse_spec(row.spec, row.id).software.name;
    nlohmann::json text = nlohmann::json::parse(row.spec);
    nlohmann::json& software = text["software"];
    if (!software.is_object()) software = nlohmann::json::object();
    software["profile"] = kAnyStack;
    StackStep step{.id = row.id, .text = text.dump(), .path = row.id};
    step.spec = parse_spec(step.text, row.id);
    u.gpu = step.spec.cluster.gpu.id;
    u.response = response_of(step.spec, profile_for(step.spec, ""));
    for (const std::string& name : validated_stacks()) {
      const auto ln = name == kAnyStack || name == u.own_stack ? std::nullopt : ln_seconds_with(step, name);
      if (ln) u.as_stack[name] = *ln;
    }
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

// The steps of one source on one kind of GPU, as those of an unknown stack: their own is none of the stacks, unless it
// is the default.
struct Group {
  std::vector<const Unknown*> steps;
  std::vector<std::string> stacks;  // names of the stacks of `known.residuals`
  SourceSteps known;
};

Group group_of(std::vector<const Unknown*> steps) {
  Group g{.steps = std::move(steps), .stacks = {kAnyStack}, .known = {}};
  g.known = {.source = g.steps.front()->row->source, .slopes = {}, .residuals = {{}}};
  for (const Unknown* u : g.steps) {
    g.known.slopes.push_back(u->response.slopes({}));
    g.known.residuals[0].push_back(std::log(*u->row->step_time_s) - u->response.built_in);
  }
  for (const auto& [name, seconds] : g.steps.front()->as_stack) {
    if (!std::ranges::all_of(g.steps, [&, &stack = name](const Unknown* u) { return u->as_stack.contains(stack); }))
      continue;
    g.stacks.push_back(name);
    g.known.residuals.emplace_back();
    for (const Unknown* u : g.steps)
      g.known.residuals.back().push_back(std::log(*u->row->step_time_s) - u->as_stack.at(name));
  }
  return g;
}

// The numbers of the steps of a group that are drawn, and of the others.
struct Draw {
  std::vector<std::size_t> taken, left;
};

Draw draw_of(std::size_t rows, std::size_t drawn, std::mt19937_64& random) {
  std::vector<std::size_t> order(rows);
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (std::size_t i = 0; i < drawn; ++i) std::swap(order[i], order[i + random() % (order.size() - i)]);
  return {{order.begin(), order.begin() + static_cast<std::ptrdiff_t>(drawn)},
          {order.begin() + static_cast<std::ptrdiff_t>(drawn), order.end()}};
}

// The results of one draw: the errors of the steps that were not drawn, and their intervals.
struct Drawn {
  double one_factor = 0, fitted = 0, covered = 0, width = 0;
};

// The response of a step with the stack number h: how its time depends on the factors is that with the first stack.
StepResponse response_as(const Group& group, std::size_t step, std::size_t h) {
  StepResponse r = group.steps[step]->response;
  r.built_in = std::log(*group.steps[step]->row->step_time_s) - group.known.residuals[h][step];
  return r;
}

Drawn judge(const Group& group, const Draw& draw, const StepPriors& priors) {
  const std::vector<double> shares = likely_stacks(group.known, draw.taken, priors);
  const auto h = static_cast<std::size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  std::vector<StepResponse> steps;
  std::vector<double> measured, ratios;
  for (const std::size_t i : draw.taken) {
    steps.push_back(response_as(group, i, h));
    measured.push_back(*group.steps[i]->row->step_time_s);
    ratios.push_back(-group.known.residuals[0][i]);
  }
  std::vector<const StepResponse*> all;
  for (const StepResponse& step : steps) all.push_back(&step);
  const StepsFit fit = fit_steps(all, measured, priors);
  const StepFit kept = step_fit(steps, measured, group.stacks[h], priors);
  std::vector<double> one, fitted;
  Drawn result{.width = kept.high / kept.low};
  for (const std::size_t i : draw.left) {
    const double off = response_as(group, i, h).at(fit.shifts) - std::log(*group.steps[i]->row->step_time_s);
    one.push_back(std::abs(std::exp(-group.known.residuals[0][i] - mean(ratios)) - 1));
    fitted.push_back(std::abs(std::exp(off) - 1));
    if (kept.low <= std::exp(-off) && std::exp(-off) <= kept.high)
      result.covered += 1 / static_cast<double>(draw.left.size());
  }
  result.one_factor = mean(one);
  result.fitted = mean(fitted);
  return result;
}

FewSteps judge_group(const Group& group, std::size_t drawn, const StepPriors& priors) {
  const std::size_t rows = group.steps.size();
  FewSteps result{.source = group.known.source, .gpu = group.steps.front()->gpu, .rows = rows};
  std::vector<double> before, one, fitted, covered, width;
  for (const double residual : group.known.residuals[0]) before.push_back(std::abs(std::exp(-residual) - 1));
  std::mt19937_64 random(rows);
  for (std::size_t i = 0; i < kDraws; ++i) {
    const Drawn d = judge(group, draw_of(rows, drawn, random), priors);
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

JudgedSteps judge_few_steps(const std::vector<PublishedRow>& rows, std::size_t drawn, const ForEach& for_each) {
  const std::vector<const PublishedRow*> sample = sample_of(rows);
  std::vector<Unknown> all(sample.size());
  for_each(all.size(), [&](std::size_t i) { all[i] = unknown_of(*sample[i]); });
  std::map<std::pair<std::string, std::string>, std::vector<const Unknown*>> by_key;
  for (const Unknown& u : all) {
    if (u.usable) by_key[{u.row->source, u.gpu}].push_back(&u);
  }
  std::vector<Group> groups;
  for (const auto& [key, steps] : by_key) {
    if (steps.size() >= std::max(kLeastSteps, drawn + 1)) groups.push_back(group_of(steps));
  }
  const auto priors_without = [&](const std::string& source) {
    std::vector<const SourceSteps*> others;
    for (const Group& g : groups) {
      if (g.known.source != source) others.push_back(&g.known);
    }
    return estimate_priors(others);
  };
  JudgedSteps result{.groups = std::vector<FewSteps>(groups.size()), .priors = {}, .sources = {}};
  for (const Group& g : groups) {
    if (result.sources.empty() || result.sources.back() != g.known.source) result.sources.push_back(g.known.source);
  }
  for_each(groups.size() + 1, [&](std::size_t i) {
    if (i == groups.size())
      result.priors = priors_without("");
    else
      result.groups[i] = judge_group(groups[i], drawn, priors_without(groups[i].known.source));
  });
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

std::string few_steps_page(const std::vector<FewSteps>& judged, std::size_t drawn) {
  constexpr double kAim = .04;
  const auto near = std::ranges::count_if(judged, [](const FewSteps& f) { return f.fitted <= kAim; });
  std::string text = fmt::format(
      "\n## Unknown stacks of which a few steps are known\n\n`orrery validate --published FILE... --from-steps {}`: {} "
      "drawn steps of a source, with the stack where a spec names none, tell the others (`calibrate --from-steps`). "
      "Medians over 20 draws of the mean error in %; \"in interval\" is of the 80 % interval. {} of {} at or below "
      "{:.0f} %.\n\n",
      drawn, drawn, near, judged.size(), 100 * kAim);
  const Table t = few_steps_table(judged, drawn);
  std::string line;
  for (const auto& column : t.columns) {
    text += fmt::format("| {} ", column.name);
    line += "| --- ";
  }
  text += "|\n" + line + "|\n";
  for (const auto& row : t.rows) text += fmt::format("| {} |\n", fmt::join(row, " | "));
  return text;
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
