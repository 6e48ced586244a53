#include "sim/page/compare.h"

#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/legend.h"
#include "sim/page/summary.h"
#include "sim/page/words.h"
#include "sim/print/text.h"
#include "sim/report/report_parts.h"

namespace orrery {
namespace {

constexpr std::size_t kMostBars = 60, kMostKeys = 80, kSpecsAsColumns = 6;

std::string bars_part(const std::vector<ComparedSpec>& specs) {
  std::vector<Bar> bars;
  std::vector<bool> used(kTimeKinds);
  double slowest = 0;
  for (const ComparedSpec& c : specs)
    slowest = c.report == nullptr ? slowest : std::max(slowest, c.report->step_time_s);
  const Scale scale = time_scale(slowest);
  for (const ComparedSpec& c : specs) {
    if (c.report == nullptr || bars.size() == kMostBars) continue;
    const Report& r = *c.report;
    bars.push_back({c.name,
                    r.step_time_s,
                    r.step_time_low_s,
                    r.step_time_high_s,
                    with_unit(r.step_time_s, scale) + (r.memory.fits ? "" : ", does not fit"),
                    {}});
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
  std::string content =
      chart_markup(bar_chart(bars, scale, "step times of the specs"), legend_markup(legend),
                   "Step time, and of what it consists. Whiskers: in 8 of 10 cases a measured step lies there.");
  if (bars.size() == kMostBars)
    content += paragraph(fmt::format("The first {} are drawn.", kMostBars), "class=\"note\"");
  return bars.empty() ? "" : part("Step time", content);
}

// The keys for which the specs have different values, in the order in which the specs list them, each with the value of
// every spec.
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
    // A spec that could not be read has no values at all, which does not count as a difference.
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

// Returns what limits a step, and of a step of two models also what each of them waits for.
std::string limit_of(const Report& r) {
  const std::string models = models_text(r);
  return models.empty() ? r.limit : fmt::format("{}; {}", r.limit, models);
}

// The table of the comparison, with further columns: each spec's interval of step times, the time that 95 % of clusters
// stay below where some spec's GPUs differ, and what limits each step. Step times hold their exact values as data, but
// for that of the best spec, which has cards.
std::string specs_markup(const ComparePage& page, std::optional<std::size_t> best) {
  Table t = page.table;
  const std::size_t before = t.columns.size();
  const bool vary = std::ranges::any_of(
      page.specs, [](const ComparedSpec& c) { return c.report != nullptr && c.report->variation.has_value(); });
  t.columns.push_back({"8 of 10"});
  if (vary) t.columns.push_back({"95 % below"});
  t.columns.push_back({"limited by", "", Align::left});
  const auto step = static_cast<std::size_t>(
      std::find_if(t.columns.begin(), t.columns.end(), [](const Column& c) { return c.name == "step"; }) -
      t.columns.begin());
  for (std::size_t i = 0; i < t.rows.size() && i < page.specs.size(); ++i) {
    const Report* r = page.specs[i].report;
    t.rows[i].resize(before);
    const bool known = r != nullptr && r->step_time_low_s < r->step_time_high_s;
    t.rows[i].push_back(known ? time_text(r->step_time_low_s) + " to " + time_text(r->step_time_high_s) : "-");
    if (vary) t.rows[i].push_back(r != nullptr && r->variation ? time_text(r->variation->p95) : "-");
    // The last column, which is the widest, holds the reason why a spec cannot be predicted.
    t.rows[i].push_back(r != nullptr ? limit_of(*r) : page.specs[i].reason);
    if (r == nullptr) t.rows[i][before - 1] = "impossible";
  }
  return table_markup(t, {}, [&](std::size_t row, std::size_t column) {
    const Report* r = row < page.specs.size() ? page.specs[row].report : nullptr;
    if (r == nullptr || column != step || row == best) return std::string();
    return figure(fmt::format("{}.report.step_time_s", row), r->step_time_s, t.rows[row][column]);
  });
}

// The index of the fastest spec that fits in memory; none where none does.
std::optional<std::size_t> best_of(const std::vector<ComparedSpec>& specs) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const Report* const r = specs[i].report;
    if (r == nullptr || !r->memory.fits) continue;
    if (!best || r->tokens_per_s > specs[*best].report->tokens_per_s) best = i;
  }
  return best;
}

// Cards with the figures of the fastest spec that fits in memory, or a warning where none does.
std::string best_part(const std::vector<ComparedSpec>& specs, std::optional<std::size_t> best) {
  if (!best) return alarm_markup("None of the specs fits in memory.");
  return part("Most tokens a second of those that fit: " + specs[*best].name,
              step_cards(*specs[*best].report, fmt::format("{}.report.", *best)));
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
      for (std::size_t i = 0; i < specs.size(); ++i)
        t.rows[i].push_back(specs[i].origins.empty() ? "-" : keys[k].second[i]);
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
  const std::optional<std::size_t> best = best_of(page.specs);
  std::string body = best_part(page.specs, best) + bars_part(page.specs);
  body += part("All specs", specs_markup(page, best));
  const Table differ = differences(page.specs);
  std::string content = differ.rows.empty() ? paragraph("The specs have the same values.") : table_markup(differ);
  body += part("What differs between them", content);
  return document({fmt::format("{} specs compared", page.specs.size()), {}, page.command, page.version, body});
}

}  // namespace orrery
