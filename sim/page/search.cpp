#include "sim/page/search.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/page/bars.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/legend.h"
#include "sim/page/summary.h"
#include "sim/page/words.h"
#include "sim/print/text.h"
#include "sim/search/report.h"

namespace orrery {
namespace {

bool on_one_machine(const std::vector<FrontRow>& rows) {
  return std::all_of(rows.begin(), rows.end(), [&](const FrontRow& r) {
    return r.machine == rows.front().machine && r.gpus == rows.front().gpus;
  });
}

std::string number_of_row(std::size_t i) { return fmt::format("{}", i + 1); }

// A scatter plot of step time over memory: of the strategies of the Pareto front or, where there is no front, of all
// strategies found.
Scatter time_over_memory(const SearchPage& p) {
  double slowest = 0;
  for (const FrontRow& r : p.front) slowest = std::max(slowest, r.step_s);
  for (const Found& f : p.result.best) slowest = std::max(slowest, f.report.step_time_s);
  const Scale scale = time_scale(slowest);
  Scatter s{.x_name = "memory of the fullest GPU, GiB", .y_name = fmt::format("step time, {}", scale.unit)};
  for (std::size_t i = 0; i < p.front.size(); ++i) {
    const FrontRow& r = p.front[i];
    s.points.push_back({static_cast<double>(r.memory) / kGiB, r.step_s / scale.size, 0, r.strategy, number_of_row(i)});
  }
  for (std::size_t i = 0; i < p.result.best.size() && p.front.empty(); ++i) {
    const Found& f = p.result.best[i];
    s.points.push_back({static_cast<double>(f.report.memory.peak_device) / kGiB, f.report.step_time_s / scale.size, 0,
                        p.space.text_of(f.point), number_of_row(i)});
  }
  s.x_limit = p.result.best.empty() ? 0 : static_cast<double>(p.result.best.front().report.memory.capacity) / kGiB;
  s.x_limit_name = "the GPU has " + memory_text(s.x_limit * kGiB);
  return s;
}

// A scatter plot of time over price of a million tokens: of the strategies of the Pareto front or, where there is no
// front, of the best strategy of each machine.
Scatter time_over_cost(const SearchPage& p) {
  Scatter s{.x_name = "rent of a million tokens, $", .y_name = "time of a million tokens, s"};
  if (p.front.empty()) s.points = p.priced;
  for (std::size_t i = 0; i < p.front.size(); ++i) {
    const FrontRow& r = p.front[i];
    const auto known = std::find(s.series.begin(), s.series.end(), r.machine);
    const auto series = static_cast<std::size_t>(known - s.series.begin());
    if (known == s.series.end()) s.series.push_back(r.machine);
    if (r.usd_per_Mtoken)
      s.points.push_back({*r.usd_per_Mtoken, 1e6 / r.tokens_per_s, series,
                          fmt::format("{} x {}: {}", r.gpus, r.machine, r.strategy), number_of_row(i)});
  }
  return s;
}

Table front_table(const std::vector<FrontRow>& rows) {
  Table t{{{"no.", "", Align::left},
           {"machine", "", Align::left},
           {"GPUs"},
           {"step"},
           {"tokens/s"},
           {"rent", "$/Mtoken"},
           {"memory"},
           {"strategy", "", Align::left}},
          {}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const FrontRow& r = rows[i];
    t.rows.push_back({number_of_row(i), r.machine, grouped(static_cast<double>(r.gpus)), time_text(r.step_s),
                      grouped(r.tokens_per_s), r.usd_per_Mtoken ? fmt::format("{:.3f}", *r.usd_per_Mtoken) : "-",
                      memory_text(static_cast<double>(r.memory)), r.strategy});
  }
  return t;
}

std::string trade_part(const SearchPage& p) {
  const bool several = p.front.empty() ? p.priced.size() > 1 : !on_one_machine(p.front);
  std::string content;
  if (several)
    content += scatter_markup(time_over_cost(p), "Time against rent: what lies further left and lower is better.");
  if (!several || p.front.empty())
    content += scatter_markup(time_over_memory(p), "Time against memory: what lies further left and lower is better.");
  if (p.front.empty()) {
    content +=
        paragraph(several ? "The machines and strategies that the tables number; --pareto finds the whole front."
                          : "The strategies that the table shows; --pareto finds the best in ever less memory too.",
                  "class=\"note\"");
  } else {
    content += table_markup(front_table(p.front));
    if (p.front_cut) content += paragraph("Cut: less memory may do on some machine.", "class=\"note\"");
  }
  return part(several ? "Time against cost" : "Time against memory", content);
}

Table numbered_strategies(const SearchPage& p) {
  Table t = strategies_table(p.space, p.result);
  t.columns.insert(t.columns.begin(), Column{"no.", "", Align::left});
  for (std::size_t i = 0; i < t.rows.size(); ++i) t.rows[i].insert(t.rows[i].begin(), number_of_row(i));
  return t;
}

std::string strategies_part(const SearchPage& p) {
  std::vector<Bar> bars;
  double slowest = 0;
  for (const Found& f : p.result.best) slowest = std::max(slowest, f.report.step_time_s);
  const Scale scale = time_scale(slowest);
  for (const Found& f : p.result.best) {
    const Report& r = f.report;
    bars.push_back({p.space.text_of(f.point),
                    r.step_time_s,
                    r.step_time_low_s,
                    r.step_time_high_s,
                    with_unit(r.step_time_s, scale),
                    {{r.step_time_s, std::string(kForwardColour)}}});
  }
  std::string content = table_markup(numbered_strategies(p));
  if (bars.size() > 1)
    content += chart_markup(bar_chart(bars, scale, "step times of the strategies"), "",
                            "Step time. Whiskers: in 8 of 10 cases a measured step lies there.");
  const std::vector<std::string> why = why_lines(p.space, p.result);
  if (!why.empty()) content += element("h3", "Why the others are slower") + '\n' + lines_markup(why);
  return part("The best strategies", content);
}

std::string found_part(const SearchPage& p) {
  const SearchResult& r = p.result;
  if (r.best.empty()) return part("Summary", alarm_markup(nothing_line(r)) + paragraph(counts_line(r)));
  const Found& best = r.best.front();
  const Spec spec = p.space.spec_of(best.point);
  std::string content = r.proven ? "" : alarm_markup("Not proven: the search was stopped, or a bound does not hold.");
  content += step_cards(best.report, "strategies.0.report.") + time_bar(best.report);
  content += paragraph("The best: " + p.space.text_of(best.point)) + lines_markup(strategy_words(spec));
  content += element("h3", "How sure it is") + '\n' + lines_markup(proof_lines(p.space, r)) + paragraph(counts_line(r));
  content += lines_markup(p.remarks);
  if (!p.repeat.empty())
    content += folded("the command that predicts it again", element("pre", escaped(p.repeat)) + '\n', true);
  return part("Summary", content);
}

}  // namespace

std::string search_page(const SearchPage& p, const SpecNotes& notes) {
  Spec spec = p.space.base();
  spec.gpus = p.space.gpus();
  std::string body = found_part(p);
  for (const Section& section : p.machines) body += section_markup(section);
  if (!p.result.best.empty()) body += strategies_part(p) + trade_part(p);
  for (const Section& section : p.advice) body += section_markup(section);
  body += machine_part(spec, {}) + spec_part(spec, notes);
  const std::string under =
      fmt::format("{} sequences of {} tokens a step", grouped(static_cast<double>(spec.strategy.global_batch)),
                  grouped(static_cast<double>(spec.sequence)));
  return document({"The best strategy for " + title_words(spec), {under}, notes.command, notes.version, body});
}

std::string largest_page(const std::string& title, const Spec& spec, const Report* report,
                         const std::vector<std::string>& lines, const SpecNotes& notes) {
  std::string content;
  if (report != nullptr) content += step_cards(*report, "report.") + time_bar(*report);
  const std::string body =
      part("Summary", content + lines_markup(lines)) + machine_part(spec, {}) + spec_part(spec, notes);
  return document({title, {title_words(spec)}, notes.command, notes.version, body});
}

}  // namespace orrery
