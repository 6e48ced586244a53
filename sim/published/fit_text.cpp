// The results of a fit to published steps, as text and as JSON.
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/print/table.h"
#include "sim/published/fit.h"

namespace orrery {

std::string refit_text(const Refit& refit) {
  Table t;
  t.columns = {{"mean |error| of step time", "", Align::left},
               {"rows", ""},
               {"built in", "%"},
               {"source out", "%"},
               {"bias", "%"},
               {"half out", "%"}};
  const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  double left_out = 0;
  for (const LeftOut& s : refit.sources) {
    t.rows.push_back({s.source, fmt::format("{}", s.rows), percent(s.in_sample), percent(s.left_out),
                      fmt::format("{:+.1f}", 100 * s.left_out_bias), percent(s.halves)});
    left_out += s.left_out / static_cast<double>(refit.sources.size());
  }
  t.rows.push_back({"mean over sources", "", "", percent(left_out)});
  Table n;
  n.columns = {
      {"fitted number", "", Align::left}, {"of", "", Align::left}, {"built in", ""}, {"prior", ""}, {"fit", ""}};
  const std::vector<FittedNumber> built_in = fitted_numbers();
  for (std::size_t i = 0; i < built_in.size(); ++i) {
    n.rows.push_back({built_in[i].key, built_in[i].holders.front(), fmt::format("{:g}", built_in[i].value),
                      fmt::format("{:g}", built_in[i].prior), fmt::format("{:.4g}", refit.numbers[i].value)});
  }
  return print(t) + '\n' + print(n);
}

std::string refit_json(const Refit& refit) {
  nlohmann::ordered_json sources = nlohmann::ordered_json::array();
  const auto fits = [](const std::vector<FittedNumber>& of) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FittedNumber& n : of)
      list.push_back({{"of", n.holders}, {"key", n.key}, {"prior", n.prior}, {"fit", n.value}});
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
                                        {"rows", refit.rows},
                                        {"numbers", fits(refit.numbers)},
                                        {"sources", sources},
                                        {"ratios", ratios}};
  return whole.dump(2) + '\n';
}

}  // namespace orrery
