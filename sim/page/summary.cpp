#include "sim/page/summary.h"

#include <fmt/format.h>

#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/html.h"
#include "sim/page/words.h"
#include "sim/print/text.h"
#include "sim/report/report_parts.h"

namespace orrery {
namespace {

// the smallest share of a step's time that a page lists, the same as in report_text()
constexpr double kSmallestShare = 0.0005;

std::string memory_card(const Report& r, const auto& place) {
  const MemoryReport& m = r.memory;
  std::vector<std::string> lines = {fit_text(r)};
  if (const RankMemory* worst = fullest_rank(m))
    lines.push_back(fmt::format("tightest: {}, {} rank{}", worst->name, worst->ranks, worst->ranks == 1 ? "" : "s"));
  const auto peak = static_cast<double>(m.peak_device);
  return card_markup("memory of a GPU", figure(place("memory.peak_device_bytes"), peak, memory_text(peak)), lines,
                     m.fits ? "good" : "bad");
}

}  // namespace

std::string card_markup(std::string_view name, std::string_view figure, const std::vector<std::string>& lines,
                        std::string_view mood) {
  std::string content = element("span", escaped(name), "class=\"of\"") + element("b", figure);
  for (const std::string& line : lines) content += element("span", escaped(line));
  return element("div", content, mood.empty() ? "class=\"card\"" : fmt::format("class=\"card {}\"", mood)) + '\n';
}

std::string cards_markup(std::string_view cards) {
  return element("div", '\n' + std::string(cards), "class=\"cards\"") + '\n';
}

std::string alarm_markup(std::string_view words) {
  return element("div", element("b", escaped(words)), "class=\"alarm\"") + '\n';
}

std::string step_cards(const Report& r, std::string_view prefix) {
  const auto place = [&](std::string_view name) { return fmt::format("{}{}", prefix, name); };
  const Scale step = time_scale(r.step_time_s);
  std::vector<std::string> interval;
  if (r.step_time_low_s < r.step_time_high_s)
    interval = {fmt::format("{} to {}", number(r.step_time_low_s, step), with_unit(r.step_time_high_s, step)),
                "8 of 10 measured steps lie there"};
  if (r.variation)
    interval.push_back(fmt::format("GPUs differ: {} on half of all such clusters, at most {} on 95 %",
                                   time_text(r.variation->p50), time_text(r.variation->p95)));
  if (r.hashes)
    interval.push_back(fmt::format("hashes choose uplinks: {} in half of all jobs, at most {} in 95 %",
                                   time_text(r.hashes->p50), time_text(r.hashes->p95)));
  std::string cards =
      card_markup("step time", figure(place("step_time_s"), r.step_time_s, time_text(r.step_time_s)), interval);
  cards += card_markup("tokens a second", figure(place("tokens_per_s"), r.tokens_per_s, grouped(r.tokens_per_s)),
                       {grouped(r.tokens_per_s_per_gpu) + " per GPU"});
  if (r.mfu > 0)
    cards += card_markup("MFU", figure(place("mfu"), r.mfu, percent_text(r.mfu)),
                         {fmt::format("{:.0f} TFLOP/s per GPU", r.model_tflops_per_gpu),
                          fmt::format("{} as papers count attention", percent_text(r.mfu_full_attention))});
  cards += memory_card(r, place);
  return cards_markup(cards);
}

std::string time_bar(const Report& r) {
  std::vector<BarPart> parts;
  const Scale scale = time_scale(r.step_time_s);
  for (int k = 0; k < kTimeKinds; ++k) {
    const auto kind = static_cast<TimeKind>(k);
    const double share = r.step_time_s > 0 ? r.time_s[k] / r.step_time_s : 0;
    if (share >= kSmallestShare)
      parts.push_back({words_of(name_of(kind)), share, with_unit(r.time_s[k], scale), std::string(colour_of(kind))});
  }
  return stacked_bar(parts, "parts of the step time");
}

std::string time_markup(const Report& r, std::string_view prefix) {
  const Scale scale = time_scale(r.step_time_s);
  Table t{{{"kind of time", "", Align::left}, {"time", std::string(scale.unit)}, {"share", "%"}}, {}};
  for (const ModelTime& m : r.models) t.columns.push_back({m.name, std::string(scale.unit)});
  t.columns.push_back({"what it is", "", Align::left});
  std::vector<std::string> swatches, figures;
  for (int k = 0; k < kTimeKinds; ++k) {
    const auto kind = static_cast<TimeKind>(k);
    const double share = r.step_time_s > 0 ? r.time_s[k] / r.step_time_s : 0;
    if (share < kSmallestShare) continue;
    t.rows.push_back({words_of(name_of(kind)), "", fmt::format("{:.1f}", 100 * share)});
    for (const ModelTime& m : r.models) t.rows.back().push_back(number(m.time_s[k], scale));
    t.rows.back().emplace_back(meaning_of(kind));
    figures.push_back(
        figure(fmt::format("{}time_s.{}", prefix, name_of(kind)), r.time_s[k], number(r.time_s[k], scale)));
    swatches.emplace_back(colour_of(kind));
  }
  return table_markup(t, swatches,
                      [&](std::size_t row, std::size_t column) { return column == 1 ? figures[row] : ""; });
}

std::string numbered(const std::vector<std::string>& lines) {
  std::string items;
  for (const std::string& line : lines) items += element("li", escaped(line)) + '\n';
  return items.empty() ? "" : element("ol", items, "class=\"levers\"") + '\n';
}

}  // namespace orrery
