// The results of a fit to published steps, as text and as JSON.
#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/print/table.h"
#include "sim/print/text.h"
#include "sim/published/fit.h"

namespace orrery {

namespace {

std::string_view left_out_name(LeftOutBy by) {
  return by == LeftOutBy::release ? "release" : by == LeftOutBy::model ? "model" : "source";
}

// The mean of the publications' means, without the summary of all steps.
double mean_of_sources(const std::vector<ErrorSummary>& errors) {
  double sum = 0, sources = 0;
  for (const ErrorSummary& e : errors) {
    if (e.source == "all") continue;
    sum += e.mean;
    ++sources;
  }
  return sources == 0 ? 0 : sum / sources;
}

std::string errors_table(const std::string& title, const std::vector<ErrorSummary>& errors) {
  if (errors.empty()) return "";
  Table t;
  t.columns = {{title, "", Align::left}, {"rows", ""}, {"mean", "%"}, {"bias", "%"}, {"p90", "%"}, {"null model", "%"}};
  for (const ErrorSummary& e : errors)
    t.rows.push_back({e.source, fmt::format("{}", e.rows), percent_number(e.mean), fmt::format("{:+.1f}", 100 * e.bias),
                      percent_number(e.p90), percent_number(e.null_mean)});
  t.rows.push_back({"mean over sources", "", percent_number(mean_of_sources(errors)), "", "", ""});
  return '\n' + print(t);
}

nlohmann::ordered_json errors_json(const std::vector<ErrorSummary>& errors) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ErrorSummary& e : errors)
    list.push_back({{"source", e.source},
                    {"rows", e.rows},
                    {"bias", e.bias},
                    {"median", e.median},
                    {"mean", e.mean},
                    {"p90", e.p90},
                    {"worst", e.worst},
                    {"null_model_mean", e.null_mean}});
  return list;
}

}  // namespace

LeftOutErrors left_out_errors(const std::vector<PublishedCase>& cases, const Refit& refit) {
  std::vector<PublishedCase> judged = cases;
  for (std::size_t i = 0; i < judged.size(); ++i) {
    const std::optional<double>& ratio = refit.ratios.at(i);
    if (ratio)
      judged[i].step_time_s = *judged[i].row.step_time_s / *ratio;
    else if (judged[i].reason.empty())
      judged[i].reason = "not predicted with what is left out";
  }
  const std::vector<Miss> steps = misses(judged, Judged::step, false);
  std::vector<Miss> experts = steps;
  std::erase_if(experts, [](const Miss& m) { return std::ranges::count(m.of->techniques, "experts") == 0; });
  return {summarize(steps), summarize(experts)};
}

std::string refit_text(const Refit& refit, const LeftOutErrors& errors) {
  Table t;
  t.columns = {{"mean |error| of step time", "", Align::left},        {"rows", ""},  {"built in", "%"},
               {fmt::format("{} out", left_out_name(refit.by)), "%"}, {"bias", "%"}, {"half out", "%"}};
  double left_out = 0;
  for (const LeftOut& s : refit.sources) {
    t.rows.push_back({s.source, fmt::format("{}", s.rows), percent_number(s.in_sample), percent_number(s.left_out),
                      fmt::format("{:+.1f}", 100 * s.left_out_bias), percent_number(s.halves)});
    left_out += s.left_out / static_cast<double>(refit.sources.size());
  }
  t.rows.push_back({fmt::format("mean over {}s", left_out_name(refit.by)), "", "", percent_number(left_out)});
  Table n;
  n.columns = {
      {"fitted number", "", Align::left}, {"of", "", Align::left}, {"built in", ""}, {"prior", ""}, {"fit", ""}};
  const std::vector<FittedNumber> built_in = fitted_numbers();
  for (std::size_t i = 0; i < built_in.size(); ++i) {
    n.rows.push_back({built_in[i].key, built_in[i].holders.front(), fmt::format("{:g}", built_in[i].value),
                      fmt::format("{:g}", built_in[i].prior), fmt::format("{:.4g}", refit.numbers[i].value)});
  }
  const std::string without = fmt::format("without the {}", left_out_name(refit.by));
  return print(t) + '\n' + print(n) + errors_table("all steps, " + without, errors.steps) +
         errors_table("steps with experts, " + without, errors.experts);
}

std::string refit_json(const Refit& refit, const LeftOutErrors& errors) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  const auto fits = [](const std::vector<FittedNumber>& of) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FittedNumber& n : of) {
      list.push_back({{"of", n.holders}, {"key", n.key}, {"prior", n.prior}, {"fit", n.value}});
      if (!n.parts.empty()) list.back()["parts"] = n.parts;
    }
    return list;
  };
  for (const LeftOut& s : refit.sources) {
    sources.push_back({{"source", s.source},
                       {"rows", s.rows},
                       {"in_sample", s.in_sample},
                       {"left_out", s.left_out},
                       {"left_out_bias", s.left_out_bias},
                       {"halves", s.halves},
                       {"without", fits(s.numbers)}});
  }
  nlohmann::ordered_json ratios = nlohmann::ordered_json::array();
  for (const std::optional<double>& ratio : refit.ratios)
    ratios.push_back(ratio ? nlohmann::ordered_json(*ratio) : nlohmann::ordered_json());
  const nlohmann::ordered_json whole = {{"schema", "orrery.published_fit/1"},
                                        {"left_out", left_out_name(refit.by)},
                                        {"rows", refit.rows},
                                        {"numbers", fits(refit.numbers)},
                                        {"sources", sources},
                                        {"steps", errors_json(errors.steps)},
                                        {"experts", errors_json(errors.experts)},
                                        {"ratios", ratios}};
  return whole.dump(2) + '\n';
}

}  // namespace orrery
