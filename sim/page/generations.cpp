#include "sim/page/generations.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/generate.h"
#include "sim/page/html.h"
#include "sim/page/legend.h"
#include "sim/page/summary.h"
#include "sim/page/words.h"

namespace orrery {
namespace {

constexpr std::size_t kMostTexts = 60;  // the most rows that a chart of generated texts draws

std::string note_of_cut(const std::vector<Bar>& bars) {
  return bars.size() < kMostTexts ? ""
                                  : paragraph(fmt::format("The first {} are drawn.", kMostTexts), "class=\"note\"");
}

// The seconds from the prompts to the last token of each row, as bars of prompts and further tokens.
std::string whole_times(const std::vector<ComparedGeneration>& rows) {
  std::vector<Bar> bars;
  double slowest = 0;
  for (const ComparedGeneration& c : rows)
    slowest = c.report == nullptr ? slowest : std::max(slowest, c.report->total_s);
  const Scale scale = time_scale(slowest);
  const std::string prompts(chart_colour(5)), tokens(chart_colour(0));
  for (const ComparedGeneration& c : rows) {
    if (c.report == nullptr || bars.size() == kMostTexts) continue;
    const GenerationReport& r = *c.report;
    bars.push_back({c.name,
                    r.total_s,
                    0,
                    0,
                    with_unit(r.total_s, scale) + (r.memory.fits() ? "" : ", does not fit"),
                    {{r.first_token_s, prompts}, {r.total_s - r.first_token_s, tokens}}});
  }
  if (bars.empty()) return "";
  return chart_markup(bar_chart(bars, scale, "times of the generated texts"),
                      legend_markup({{prompts, "prompts, to the first token"}, {tokens, "further tokens"}}),
                      "Time from the prompts to the last token of a batch.") +
         note_of_cut(bars);
}

// The mean time of a further token of each row, as bars of what the middle pass of one token waits for.
std::string token_times(const std::vector<ComparedGeneration>& rows) {
  std::vector<Bar> bars;
  std::vector<LegendEntry> legend;
  double slowest = 0;
  for (const ComparedGeneration& c : rows)
    slowest = c.report == nullptr ? slowest : std::max(slowest, c.report->token_s);
  const Scale scale = time_scale(slowest);
  for (const ComparedGeneration& c : rows) {
    if (c.report == nullptr || c.report->decode.empty() || bars.size() == kMostTexts) continue;
    const GenerationReport& r = *c.report;
    bars.push_back({c.name, r.token_s, 0, 0, with_unit(r.token_s, scale), {}});
    std::size_t series = 0;
    for_limits(r.decode[r.decode.size() / 2].limits, [&](const char* name, double share) {
      const std::string colour(chart_colour(series++));
      if (share < 0.0005) return;
      bars.back().pieces.push_back({share * r.token_s, colour});
      const bool known =
          std::any_of(legend.begin(), legend.end(), [&](const LegendEntry& e) { return e.name == name; });
      if (!known) legend.push_back({colour, name});
    });
  }
  if (bars.empty()) return "";
  return chart_markup(bar_chart(bars, scale, "times of each further token"), legend_markup(legend),
                      "Mean time of a further token, and what it waits for.") +
         note_of_cut(bars);
}

// The table, in which times of tokens hold their exact values as data, and below it why some rows are impossible.
std::string rows_markup(const GenerationRows& of, std::optional<std::size_t> best) {
  Table shown = of.table;
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < of.rows.size() && i < shown.rows.size(); ++i) {
    if (of.rows[i].report != nullptr) continue;
    shown.rows[i].back() = "impossible";
    reasons.push_back(fmt::format("{}: {}", of.rows[i].name, of.rows[i].reason));
  }
  const auto column = [&](const char* name) {
    const auto found =
        std::find_if(of.table.columns.begin(), of.table.columns.end(), [&](const Column& c) { return c.name == name; });
    return static_cast<std::size_t>(found - of.table.columns.begin());
  };
  const std::size_t first = column("first token"), each = column("each token");
  const std::string table = table_markup(shown, {}, [&](std::size_t row, std::size_t at) {
    const GenerationReport* r = row < of.rows.size() ? of.rows[row].report : nullptr;
    if (r == nullptr || row == best || (at != first && at != each)) return std::string();
    return figure(fmt::format("{}.report.{}", row, at == first ? "ttft_s" : "tpot_s"),
                  at == first ? r->first_token_s : r->token_s, of.table.rows[row][at]);
  });
  return table + lines_markup(reasons);
}

// The index of the row with the most tokens a second of those that fit; none where none does.
std::optional<std::size_t> best_row(const std::vector<ComparedGeneration>& rows) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const GenerationReport* const r = rows[i].report;
    if (r == nullptr || !r->memory.fits()) continue;
    if (!best || r->tokens_per_s > rows[*best].report->tokens_per_s) best = i;
  }
  return best;
}

// Cards of the best row, or a warning where there is none.
std::string best_text(const std::vector<ComparedGeneration>& rows, std::optional<std::size_t> best) {
  if (!best) return alarm_markup("None of the specs fits in memory.");
  return part("Most tokens a second of those that fit: " + rows[*best].name,
              generation_cards(*rows[*best].report, rows[*best].gpus, fmt::format("{}.report.", *best)));
}

}  // namespace

std::string compared_generations_page(const GenerationRows& of, const std::vector<ComparedSpec>& specs,
                                      const std::string& command, const std::string& version) {
  const std::optional<std::size_t> best = best_row(of.rows);
  std::string body = best_text(of.rows, best);
  if (const std::string times = whole_times(of.rows); !times.empty()) body += part("All of a batch", times);
  if (const std::string times = token_times(of.rows); !times.empty()) body += part("Each further token", times);
  body += part("All specs", rows_markup(of, best));
  const Table differ = differences(specs);
  body += part("What differs between them",
               differ.rows.empty() ? paragraph("The specs have the same values.") : table_markup(differ));
  return document({fmt::format("{} specs compared", specs.size()), {}, command, version, body});
}

std::string found_generations_page(const GenerationRows& of, const Spec& spec, const std::vector<std::string>& lines,
                                   const SpecNotes& notes) {
  std::string summary = of.rows.empty() ? alarm_markup("No layout fits in memory.") : "";
  if (!of.rows.empty()) {
    summary += generation_cards(*of.rows.front().report, spec.gpus, "results.0.report.");
    summary += paragraph("The best: " + of.rows.front().name);
    summary += paragraph("limited by " + limit_text(*of.rows.front().report));
  }
  std::string body = part("Summary", summary + lines_markup(lines));
  if (!of.rows.empty())
    body += part("The best layouts", table_markup(of.table) + whole_times(of.rows) + token_times(of.rows));
  body += machine_part(spec, {}) + spec_part(spec, notes);
  const Generation& g = *spec.generation;
  return document({"The best layout for " + title_words(spec),
                   {fmt::format("generates {} tokens a sequence from prompts of {}", g.output, g.input)},
                   notes.command,
                   notes.version,
                   body});
}

}  // namespace orrery
