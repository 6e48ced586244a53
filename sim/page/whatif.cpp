#include "sim/page/whatif.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "models/base/names.h"
#include "sim/page/bars.h"
#include "sim/page/chart.h"
#include "sim/page/colours.h"
#include "sim/page/document.h"
#include "sim/page/html.h"
#include "sim/page/legend.h"
#include "sim/page/summary.h"
#include "sim/print/text.h"
#include "sim/whatif/whatif_text.h"

namespace orrery {
namespace {

constexpr std::size_t kMostSlow = 12;  // the most bars of a chart
constexpr std::size_t kLongest = 40;   // the most bytes of a name that a bar or a row shows
constexpr double kStrongest = 0.5;     // the share of more, or of less, time that has the full colour

std::string share_text(double share) {
  std::string text = fmt::format("{:+.1f} %", 100 * share);
  return text == "-0.0 %" ? "+0.0 %" : text;
}

// The colour of a share of more time: orange for more, blue for less, grey for none.
std::string colour_of_share(double share) {
  constexpr std::array<int, 3> kSame = {0xd9, 0xdc, 0xe1}, kMore = {0xd9, 0x73, 0x0d}, kLess = {0x1f, 0x6f, 0xb8};
  const double part = std::min(1.0, std::abs(share) / kStrongest);
  const auto channel = [&](std::size_t i) {
    return kSame[i] + static_cast<int>(std::lround(part * ((share > 0 ? kMore : kLess)[i] - kSame[i])));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(1), channel(2));
}

std::string cards_of(const WhatifAnswer& a, const WhatifQuestion& question) {
  const auto card = [&](const char* name, const char* id, double time, std::string line) {
    return card_markup(name, figure(id, time, time_text(time)), {std::move(line)});
  };
  std::string cards =
      card("measured step", "measured_step_time_s", a.measured,
           a.steps == 1 ? std::string("one step") : fmt::format("mean of {} steps", a.steps)) +
      card("replayed", "replayed_step_time_s", a.replayed,
           fmt::format("{:.2f} % off in the mean", 100 * a.replay_error)) +
      card("without gaps", "without_gaps_s", a.without_gaps,
           share_text(a.without_gaps / a.measured - 1) + " of measured") +
      card("with even work", "even_s", a.even, share_text(a.even / a.without_gaps - 1) + " of without gaps");
  if (question.asks())
    cards += card("as asked", "step_time_s", a.asked, share_text(a.asked / a.replayed - 1) + " of the replayed step");
  return cards_markup(cards);
}

// A bar for each of the slowest ops, ranks or stages: the share by which it alone makes an even step longer.
std::string slowdowns_part(std::string_view title, const std::vector<Slowdown>& list) {
  std::vector<Bar> bars;
  for (const Slowdown& s : list) {
    if (bars.size() == kMostSlow) break;
    const double share = s.slowdown - 1, shown = std::max(0.0, share);
    bars.push_back({std::string(first_characters(s.name, kLongest)),
                    shown,
                    0,
                    0,
                    share_text(share),
                    {{shown, std::string(colour_of_share(kStrongest))}}});
  }
  const std::string chart = bar_chart(bars, {"%", 0.01, 1}, title);
  if (chart.empty()) return "";
  std::string caption = "With it as measured and all else even: how much longer the step is.";
  if (list.size() > bars.size()) caption += fmt::format(" {} less slow ones are left out.", list.size() - bars.size());
  return part(title, chart_markup(chart, "", caption));
}

std::string map_part(const WhatifAnswer& a) {
  constexpr double kNames = 200, kHead = 24, kRow = 24, kWidest = 110;
  const WorkMap map = work_map(a, kMostMapRows);
  if (map.ranks.empty()) return "";
  const double wide = std::min(kWidest, (kChartUnits - kNames) / static_cast<double>(map.stages.size()));
  Drawing d;
  TextStyle head = axis_words("middle");
  head.room = wide - 4;
  for (std::size_t s = 0; s < map.stages.size(); ++s)
    d.text(kNames + wide * (static_cast<double>(s) + 0.5), kHead - 8, map.stages[s], head);
  for (std::size_t r = 0; r < map.ranks.size(); ++r) {
    const double y = kHead + kRow * static_cast<double>(r);
    d.text(kNames - 10, y + kRow / 2 + 4.5, map.ranks[r], chart_words("end", kNames - 14));
    for (std::size_t s = 0; s < map.stages.size(); ++s) {
      const double x = kNames + wide * static_cast<double>(s);
      const std::string colour = colour_of_share(map.slower[r][s]), words = share_text(map.slower[r][s]);
      d.rect({x, y, wide - 1, kRow - 1}, {{"fill", colour}},
             fmt::format("{}, {}: {}", map.ranks[r], map.stages[s], words));
      TextStyle style = chart_words("middle");
      style.fill = ink_on(colour);
      if (text_width(words, style) + 4 < wide) d.text(x + wide / 2, y + kRow / 2 + 4.5, words, style);
    }
  }
  const double height = kHead + kRow * static_cast<double>(map.ranks.size());
  const std::string legend = legend_markup({{colour_of_share(-kStrongest), "half the time of even work"},
                                            {colour_of_share(0), "even"},
                                            {colour_of_share(kStrongest), "half as long again, or longer"}});
  return part("Compute of each rank over even work",
              chart_markup(inline_svg(d, kChartUnits, height, "compute of ranks and stages over even work"), legend,
                           map.several ? "A cell is the slowest of its ranks and stages." : ""));
}

std::string transfers_part(const WhatifAnswer& a) {
  double largest = 0;
  for (const TransferSplit& s : a.transfers) largest = std::max(largest, s.moving + s.waiting);
  const Scale scale = time_scale(largest);
  const std::string moving(chart_colour(0)), waiting(chart_colour(4));
  std::vector<Bar> bars;
  for (const TransferSplit& s : a.transfers) {
    if (bars.size() == kMostSlow) break;
    bars.push_back({std::string(first_characters(s.op, kLongest)),
                    s.moving + s.waiting,
                    0,
                    0,
                    fmt::format("{} + {}", number(s.moving, scale), with_unit(s.waiting, scale)),
                    {{s.moving, moving}, {s.waiting, waiting}}});
  }
  const std::string chart = bar_chart(bars, scale, "transfers of a step");
  if (chart.empty()) return "";
  return part(
      "Transfers of a rank in a step",
      chart_markup(chart, legend_markup({{moving, "moving data"}, {waiting, "waiting for the last rank"}}), ""));
}

}  // namespace

std::string whatif_page(const WhatifPage& page) {
  const WhatifAnswer& a = page.answer;
  std::vector<std::string> remarks = a.remarks;
  if (a.clock_shift > 1e-4)
    remarks.push_back("clocks of ranks were set by the ends of their transfers, by up to " + time_text(a.clock_shift));
  std::string body = part("Summary", cards_of(a, page.question) + lines_markup(remarks));
  body += slowdowns_part("What each kind of op costs", a.by_op);
  body += slowdowns_part("What each rank costs", a.by_worker);
  body += slowdowns_part("What each stage costs", a.by_stage);
  body += map_part(a) + transfers_part(a);
  if (const std::vector<std::string> lines = divergence_lines(a); !lines.empty())
    body += part(lines[0], lines_markup({lines.begin() + 1, lines.end()}));
  if (!page.roofline.empty()) body += part("Under the roofs", element("pre", escaped(page.roofline)));
  return document({"A measured run, questioned",
                   {fmt::format("{} rank{}, {} step{}", a.workers.size(), a.workers.size() == 1 ? "" : "s", a.steps,
                                a.steps == 1 ? "" : "s")},
                   page.command,
                   page.version,
                   body});
}

}  // namespace orrery
