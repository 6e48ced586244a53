#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/generate/served.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

struct Errors {
  std::vector<double> ratios;

  double median_ratio() const { return at(ratios, 0.5); }
  std::vector<double> sizes() const {
    std::vector<double> sizes;
    for (const double r : ratios) sizes.push_back(std::abs(r - 1));
    return sizes;
  }
  double mean() const {
    double sum = 0;
    for (const double e : sizes()) sum += e;
    return sum / static_cast<double>(ratios.size());
  }
  static double at(std::vector<double> values, double share) {
    std::sort(values.begin(), values.end());
    return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
  }
};

using Groups = std::map<std::vector<std::string>, Errors>;

Groups grouped(const std::vector<ServedCase>& cases, bool by_stack) {
  Groups groups;
  for (const ServedCase& c : cases) {
    const std::string stack = c.row->framework.substr(0, c.row->framework.find(' '));
    for (const ServedCase::Figure& f : c.figures)
      groups[by_stack ? std::vector{std::string(f.name), stack, c.row->gpu} : std::vector{std::string(f.name)}]
          .ratios.push_back(f.ratio());
  }
  return groups;
}

std::map<std::string, int> refusals(const std::vector<ServedCase>& cases) {
  std::map<std::string, int> counts;
  for (const ServedCase& c : cases) {
    if (!c.refused.empty()) ++counts[c.refused];
  }
  return counts;
}

Table error_table(const Groups& groups, std::vector<Column> columns) {
  columns.insert(columns.end(), {{"rows"}, {"ratio", "median"}, {"error", "mean %"}, {"", "median %"}, {"", "p90 %"}});
  Table table{std::move(columns), {}};
  for (const auto& [names, errors] : groups) {
    std::vector<std::string> row = names;
    row.push_back(fmt::format("{}", errors.ratios.size()));
    row.push_back(fmt::format("{:.2f}", errors.median_ratio()));
    for (const double e : {errors.mean(), Errors::at(errors.sizes(), 0.5), Errors::at(errors.sizes(), 0.9)})
      row.push_back(fmt::format("{:.1f}", 100 * e));
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace

std::vector<Section> served_sections(const std::vector<ServedCase>& cases) {
  const Column figure{"figure", "", Align::left}, stack{"stack", "", Align::left}, gpu{"GPU", "", Align::left};
  Section refused{.title = "not predicted"};
  for (const auto& [reason, count] : refusals(cases)) refused.lines.push_back(fmt::format("{:>5}  {}", count, reason));
  return {{"Errors by stack and GPU", {}, error_table(grouped(cases, true), {figure, stack, gpu}), {}},
          {"Errors of all rows", {}, error_table(grouped(cases, false), {figure}), {}},
          refused};
}

std::string served_text(const std::vector<ServedCase>& cases, const Style& style) {
  const std::vector<Section> sections = served_sections(cases);
  std::string text = print(sections[0].table, "", style.columns) + "\n" + print(sections[1].table, "", style.columns);
  if (!sections[2].is_empty()) text += '\n' + text_of(sections[2], style);
  return text;
}

std::string served_json(const std::vector<ServedCase>& cases) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const ServedCase& c : cases) {
    nlohmann::ordered_json row = {{"id", c.row->id}};
    if (!c.refused.empty()) row["refused"] = c.refused;
    for (const ServedCase::Figure& f : c.figures)
      row["figures"].push_back({{"name", f.name}, {"predicted", f.predicted}, {"measured", f.measured}});
    rows.push_back(std::move(row));
  }
  return nlohmann::ordered_json{{"schema", "orrery.served/1"}, {"rows", rows}}.dump(2) + "\n";
}

}  // namespace orrery
