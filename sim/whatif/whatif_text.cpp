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

constexpr std::size_t kMostRows = 12;  // the most rows of a table of slowdowns

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

std::string work_text(const WhatifAnswer& a, const Style& style) {
  const WorkMap map = work_map(a, kMostMapRows);
  if (map.ranks.empty()) return "";
  Table t;
  t.columns = {{map.ranks.size() < a.work.size() ? "ranks" : "rank", "", Align::left}};
  for (const std::string& stage : map.stages) t.columns.push_back({stage, "%"});
  for (std::size_t r = 0; r < map.ranks.size(); ++r) {
    t.rows.push_back({map.ranks[r]});
    for (const double slower : map.slower[r]) t.rows.back().push_back(percent_text(slower));
  }
  return '\n' + heading("Compute of each rank over even work", style) + '\n' +
         (map.several ? "  a cell is the slowest of its ranks and stages\n" : "") + print(t, "  ", style.columns);
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
  std::string text;
  for (const std::string& line : divergence_lines(a))
    text += text.empty() ? '\n' + heading(line, style) + '\n' : "  " + line + '\n';
  return text;
}

}  // namespace

WorkMap work_map(const WhatifAnswer& a, std::size_t most) {
  WorkMap map;
  if (a.work.size() < 2 && (a.work.empty() || a.work[0].size() < 2)) return map;
  const std::vector<IndexRange> rows = index_ranges(a.work.size(), most);
  const std::vector<IndexRange> columns = index_ranges(a.work[0].size(), most);
  const auto named = [](const IndexRange& r, const auto& name) {
    return r.size() == 1 ? name(r.begin) : fmt::format("{} to {}", name(r.begin), name(r.end - 1));
  };
  for (const IndexRange& c : columns)
    map.stages.push_back(a.work[0].size() > 1 ? "stage " + named(c, [](std::size_t i) { return fmt::format("{}", i); })
                                              : "compute");
  for (const IndexRange& r : rows) {
    map.ranks.push_back(named(r, [&](std::size_t i) { return name_text(a.workers[i]); }));
    map.slower.emplace_back();
    for (const IndexRange& c : columns) {
      double slowest = a.work[r.begin][c.begin];
      for (std::size_t w = r.begin; w < r.end; ++w) {
        for (std::size_t s = c.begin; s < c.end; ++s) slowest = std::max(slowest, a.work[w][s]);
      }
      map.slower.back().push_back(slowest - 1);
    }
  }
  map.several = rows.size() < a.work.size() || columns.size() < a.work[0].size();
  return map;
}

std::vector<std::string> divergence_lines(const WhatifAnswer& a) {
  if (a.between_first.empty()) return {};
  std::vector<std::string> lines = {
      fmt::format("Ranks {} and {}", name_text(a.between_first), name_text(a.between_second))};
  if (!a.divergence) {
    lines.emplace_back("stay together: no operation ends by over 1 % of a step later on one of them");
    return lines;
  }
  const Divergence& d = *a.divergence;
  lines.push_back(fmt::format("part first in step {}, in operation {}: {}", d.step, d.number, name_text(d.op)));
  if (d.how == Divergence::How::runs) {
    lines.push_back(fmt::format("only rank {} runs it", name_text(d.behind)));
    return lines;
  }
  lines.push_back(fmt::format("begins after {} and {}, takes {} and {}", time_text(d.begin_first),
                              time_text(d.begin_second), time_text(d.time_first), time_text(d.time_second)));
  lines.push_back(fmt::format("rank {} ends it {} later, because it {}", name_text(d.behind), time_text(d.later),
                              d.how == Divergence::How::takes ? "takes longer there" : "begins later there"));
  return lines;
}

std::string whatif_text(const WhatifAnswer& a, const WhatifQuestion& question, const Style& style) {
  return times_text(a, question, style) +
         slowdowns_text("With one kind of op as measured, all else even", "op", a.by_op, style) +
         slowdowns_text("With one rank as measured, all else even", "rank", a.by_worker, style) +
         slowdowns_text("With one stage as measured, all else even", "stage", a.by_stage, style) + work_text(a, style) +
         divergence_text(a, style) + transfers_text(a, style);
}

}  // namespace orrery
