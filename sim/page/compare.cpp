#include "sim/page/compare.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/legend.h"
#include "sim/page/summary.h"
#include "sim/page/words.h"
#include "sim/print/text.h"
#include "sim/report/report_text.h"

namespace orrery {
namespace {

constexpr std::size_t kMostBars = 60, kMostKeys = 80, kSpecsAsColumns = 6;

std::string bars_part(const std::vector<ComparedSpec>& specs) {
  std::vector<Bar> bars;
  std::vector<bool> used(kTimeKinds);
  double slowest = 0;
  for (const ComparedSpec& c : specs) slowest = c.report == nullptr ? slowest : std::max(slowest, c.report->step_time_s);
  const Scale scale = time_scale(slowest);
  for (const ComparedSpec& c : specs) {
    if (c.report == nullptr || bars.size() == kMostBars) continue;
    const Report& r = *c.report;
    bars.push_back({c.name, r.step_time_s, r.step_time_low_s, r.step_time_high_s,
                    with_unit(r.step_time_s, scale) + (r.memory.fits ? "" : ", does not fit"), {}});
    for (int k = 0; k < kTimeKinds; ++k) {
      if (r.time_s[k] < 0.0005 * r.step_time_s) continue;
      used[k] = true;
      bars.back().pieces.push_back({r.time_s[k], std::string(colour_of(static_cast<TimeKind>(k)))});
    }
  }
  std::vector<LegendEntry> legend;
  for (int k = 0; k < kTimeKinds; ++k) {
    const auto kind = static_cast<TimeKind>(k);
    if (used[k]) legend.push_back({std::string(colour_of(kind)), words_of(name_of(kind))});
  }
  std::string content = chart_markup(bar_chart(bars, scale, "step times of the specs"), legend_markup(legend),
                                     "Step time, and of what it consists. Whiskers: in 8 of 10 cases a measured step lies there.");
  if (bars.size() == kMostBars) content += paragraph(fmt::format("The first {} are drawn.", kMostBars), "class=\"note\"");
  return bars.empty() ? "" : part("Step time", content);
}

// The keys whose values differ, in the order of the specs, with a value for each spec.
std::vector<std::pair<std::string, std::vector<std::string>>> differing(const std::vector<ComparedSpec>& specs) {
  std::vector<std::string> keys;
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    for (const Origin& o : specs[i].origins) {
      const auto [found, added] = values.try_emplace(o.key, specs.size(), "-");
      if (added) keys.push_back(o.key);
      found->second[i] = o.value.empty() ? "-" : o.value;
    }
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> result;
  for (const std::string& key : keys) {
    // A spec that could not be read has no values at all, which is no difference.
    const std::vector<std::string>& row = values.at(key);
    const std::string* first = nullptr;
    bool differs = false;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].origins.empty()) continue;
      if (first == nullptr) first = &row[i];
      differs = differs || row[i] != *first;
    }
    if (differs) result.emplace_back(key, row);
  }
  return result;
}

std::string figures_markup(const std::vector<ComparedSpec>& specs) {
  std::string rows;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].report == nullptr) continue;
    const Report& r = *specs[i].report;
    const auto place = [&](std::string_view name) { return fmt::format("{}.report.{}", i, name); };
    const auto peak = static_cast<double>(r.memory.peak_device);
    const bool known = r.step_time_low_s < r.step_time_high_s;
    rows += element("tr", element("td", escaped(specs[i].name)) +
                              element("td", figure(place("step_time_s"), r.step_time_s, time_text(r.step_time_s)), "class=\"n\"") +
                              element("td", known ? escaped(time_text(r.step_time_low_s) + " to " + time_text(r.step_time_high_s)) : "-", "class=\"n\"") +
                              element("td", figure(place("tokens_per_s"), r.tokens_per_s, grouped(r.tokens_per_s)), "class=\"n\"") +
                              element("td", figure(place("memory.peak_device_bytes"), peak, memory_text(peak)), "class=\"n\"") +
                              element("td", r.memory.fits ? "fits" : escaped("does not fit: " + lack_text(r.memory))) +
                              element("td", escaped(r.limit))) +
            '\n';
  }
  const std::string head = "<tr><th>spec</th><th class=\"n\">step</th><th class=\"n\">8 of 10</th><th class=\"n\">tokens/s</th>"
                           "<th class=\"n\">memory of a GPU</th><th>fits</th><th>limited by</th></tr>";
  return "<div class=\"wide\">" + element("table", element("thead", head) + '\n' + element("tbody", rows)) + "</div>\n";
}

// The fastest spec that fits, as cards; a warning where none does.
std::string best_part(const std::vector<ComparedSpec>& specs) {
  const ComparedSpec* best = nullptr;
  for (const ComparedSpec& c : specs) {
    if (c.report == nullptr || !c.report->memory.fits) continue;
    if (best == nullptr || c.report->tokens_per_s > best->report->tokens_per_s) best = &c;
  }
  if (best == nullptr) return alarm_markup("None of the specs fits in memory.");
  return part("Most tokens a second of those that fit: " + best->name, step_cards(*best->report, "best."));
}

}  // namespace

Table differences(const std::vector<ComparedSpec>& specs) {
  const auto keys = differing(specs);
  const std::size_t shown = std::min(keys.size(), kMostKeys);
  Table t;
  t.columns.push_back({specs.size() > kSpecsAsColumns ? "spec" : "key", "", Align::left});
  if (specs.size() > kSpecsAsColumns) {
    for (const ComparedSpec& c : specs) t.rows.push_back({c.name});
    for (std::size_t k = 0; k < shown; ++k) {
      t.columns.push_back({keys[k].first, "", Align::left});
      for (std::size_t i = 0; i < specs.size(); ++i) t.rows[i].push_back(specs[i].origins.empty() ? "-" : keys[k].second[i]);
    }
    return shown == 0 ? Table{} : t;
  }
  for (const ComparedSpec& c : specs) t.columns.push_back({c.name, "", Align::left});
  for (std::size_t k = 0; k < shown; ++k) {
    t.rows.push_back({keys[k].first});
    t.rows.back().insert(t.rows.back().end(), keys[k].second.begin(), keys[k].second.end());
  }
  return t;
}

std::string compare_page(const ComparePage& page) {
  std::string body = best_part(page.specs) + bars_part(page.specs);
  body += part("All specs", table_markup(page.table) + figures_markup(page.specs));
  const Table differ = differences(page.specs);
  std::string content = differ.rows.empty() ? paragraph("The specs have the same values.") : table_markup(differ);
  body += part("What differs between them", content);
  return document({fmt::format("{} specs compared", page.specs.size()), {}, page.command, page.version, body});
}

}  // namespace orrery
