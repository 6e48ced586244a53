#include "sim/whatif/whatif_text.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/base/names.h"
#include "models/base/sensible.h"
#include "sim/print/index_ranges.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

constexpr std::size_t kMostRows = 12;   // the most rows of a table of slowdowns
constexpr std::size_t kMostCells = 32;  // the most rows, and the most columns, in the map of ranks and stages

// The name of an op, a rank or a stage as tables show it: long names lose their ends.
std::string name_text(const std::string& name) { return std::string(first_characters(name, sensible::kLongestWord)); }

// A share as a text: "+12.5"; never "-0.0".
std::string percent_text(double share) {
  std::string text = fmt::format("{:+.1f}", 100 * share);
  return text == "-0.0" ? "+0.0" : text;
}

// A share as a text: "12.5 % less", or "12.5 % more" if it is negative.
std::string less_text(double share) {
  return fmt::format("{:.1f} % {}", 100 * std::abs(share), share < 0 ? "more" : "less");
}

std::string times_text(const WhatifAnswer& a, const WhatifQuestion& question, const Style& style) {
  const Scale scale = time_scale(a.measured);
  Table t;
  t.columns = {{"a step", "", Align::left}, {"time", std::string(scale.unit)}, {"", "", Align::left}};
  const auto row = [&](const char* name, double time, const std::string& about) {
    t.rows.push_back({name, number(time, scale), about});
  };
  row("measured", a.measured, a.steps == 1 ? "one step" : fmt::format("mean of {} steps", a.steps));
  row("replayed", a.replayed, fmt::format("{:.2f} % off in the mean", 100 * a.replay_error));
  row("without gaps", a.without_gaps, "ops begin as soon as they can: " + less_text(1 - a.without_gaps / a.measured));
  row("with even work", a.even,
      "no rank, stage or micro-batch slower than the others: " + less_text(1 - a.even / a.without_gaps) +
          " than without gaps");
  if (question.asks())
    row("as asked", a.asked, fmt::format("{:+.1f} % of the replayed step", 100 * (a.asked / a.replayed - 1)));
  std::string text = heading("The run replayed", style) + '\n' + print(t, "  ", style.columns);
  if (a.clock_shift > 1e-4)
    text += fmt::format("  clocks of ranks were set by the ends of their transfers, by up to {}\n",
                        time_text(a.clock_shift));
  for (const std::string& remark : a.remarks) text += fmt::format("  {}\n", remark);
  return text;
}

std::string slowdowns_text(std::string_view title, std::string_view what, const std::vector<Slowdown>& list,
                           const Style& style) {
  if (list.empty()) return "";
  Table t;
  t.columns = {{std::string(what), "", Align::left}, {"slowdown", "%"}};
  for (std::size_t i = 0; i < std::min(kMostRows, list.size()); ++i)
    t.rows.push_back({name_text(list[i].name), percent_text(list[i].slowdown - 1)});
  std::string text = '\n' + heading(title, style) + '\n' + print(t, "  ", style.columns);
  if (list.size() > kMostRows) text += fmt::format("  and {} less slow ones\n", list.size() - kMostRows);
  return text;
}

// The map of ranks and stages. Where there are too many for a row each, a row stands for the slowest of several.
std::string work_text(const WhatifAnswer& a, const Style& style) {
  if (a.work.size() < 2 && (a.work.empty() || a.work[0].size() < 2)) return "";
  const std::vector<IndexRange> rows = index_ranges(a.work.size(), kMostCells);
  const std::vector<IndexRange> columns = index_ranges(a.work[0].size(), kMostCells);
  const auto named = [](const IndexRange& r, const auto& name) {
    return r.size() == 1 ? name(r.begin) : fmt::format("{} to {}", name(r.begin), name(r.end - 1));
  };
  Table t;
  t.columns = {{rows.size() < a.work.size() ? "ranks" : "rank", "", Align::left}};
  for (const IndexRange& c : columns)
    t.columns.push_back(
        {a.work[0].size() > 1 ? "stage " + named(c, [](std::size_t i) { return fmt::format("{}", i); }) : "compute",
         "%"});
  for (const IndexRange& r : rows) {
    std::vector<std::string> cells = {named(r, [&](std::size_t i) { return name_text(a.workers[i]); })};
    for (const IndexRange& c : columns) {
      double slowest = a.work[r.begin][c.begin];
      for (std::size_t w = r.begin; w < r.end; ++w) {
        for (std::size_t s = c.begin; s < c.end; ++s) slowest = std::max(slowest, a.work[w][s]);
      }
      cells.push_back(percent_text(slowest - 1));
    }
    t.rows.push_back(std::move(cells));
  }
  const bool several = rows.size() < a.work.size() || columns.size() < a.work[0].size();
  return '\n' + heading("Compute of each rank over even work", style) + '\n' +
         (several ? "  a cell is the slowest of its ranks and stages\n" : "") + print(t, "  ", style.columns);
}

std::string transfers_text(const WhatifAnswer& a, const Style& style) {
  if (a.transfers.empty()) return "";
  double largest = 0;
  for (const TransferSplit& s : a.transfers) largest = std::max({largest, s.moving, s.waiting});
  const Scale scale = time_scale(largest);
  Table t;
  t.columns = {{"transfers of a rank", "", Align::left},
               {"moving", std::string(scale.unit)},
               {"waiting for the last rank", std::string(scale.unit)}};
  for (const TransferSplit& s : a.transfers)
    t.rows.push_back({name_text(s.op), number(s.moving, scale), number(s.waiting, scale)});
  return '\n' + heading("Transfers of a step", style) + '\n' + print(t, "  ", style.columns);
}

std::string divergence_text(const WhatifAnswer& a, const Style& style) {
  if (a.between_first.empty()) return "";
  std::string text =
      '\n' + heading(fmt::format("Ranks {} and {}", name_text(a.between_first), name_text(a.between_second)), style);
  if (!a.divergence) return text + "\n  stay together: no operation ends by over 1 % of a step later on one of them\n";
  const Divergence& d = *a.divergence;
  text += fmt::format("\n  part first in step {}, in operation {}: {}\n", d.step, d.number, name_text(d.op));
  if (d.how == Divergence::How::runs) return text + fmt::format("  only rank {} runs it\n", name_text(d.behind));
  text += fmt::format("  begins after {} and {}, takes {} and {}\n", time_text(d.begin_first),
                      time_text(d.begin_second), time_text(d.time_first), time_text(d.time_second));
  return text + fmt::format("  rank {} ends it {} later, because it {}\n", name_text(d.behind), time_text(d.later),
                            d.how == Divergence::How::takes ? "takes longer there" : "begins later there");
}

}  // namespace

std::string whatif_text(const WhatifAnswer& a, const WhatifQuestion& question, const Style& style) {
  return times_text(a, question, style) +
         slowdowns_text("With one kind of op as measured, all else even", "op", a.by_op, style) +
         slowdowns_text("With one rank as measured, all else even", "rank", a.by_worker, style) +
         slowdowns_text("With one stage as measured, all else even", "stage", a.by_stage, style) + work_text(a, style) +
         divergence_text(a, style) + transfers_text(a, style);
}

}  // namespace orrery
