#include "sim/page/links.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "sim/page/axis.h"
#include "sim/page/chart.h"
#include "sim/page/colours.h"
#include "sim/page/html.h"
#include "sim/page/legend.h"
#include "sim/page/words.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr std::size_t kLinkSlots = 300;  // number of intervals of equal length into which the chart divides the time
// The left edge is that of the timeline (timeline.cpp), so that the same time stands at the same place in both.
constexpr double kLinkLeft = 222, kLinkTop = 14, kLinkHeight = 74, kLinkGap = 18, kLinkAxis = 42;

// The kind of exposed time that the transfers in groups of a dimension count to, which has their colour.
TimeKind kind_of_transfers(Dimension group) {
  switch (group) {
    case Dimension::tensor:
    case Dimension::kv:
    case Dimension::tensor_row:
    case Dimension::tensor_column:
    case Dimension::tensor_depth:
      return TimeKind::exposed_tensor;
    case Dimension::context:
    case Dimension::ulysses:
      return TimeKind::exposed_context;
    case Dimension::expert:
    case Dimension::expert_tensor:
      return TimeKind::exposed_expert;
    case Dimension::pipeline:
    case Dimension::embedding:
    case Dimension::vocabulary:
      return TimeKind::exposed_pipeline;
    default:
      return TimeKind::exposed_data;
  }
}

// For each interval of time the mean shares of a link's capacity, by kinds of transfers.
using LinkShares = std::array<double, kTimeKinds>;

std::vector<LinkShares> link_slots(const LinkLoad& load, Picoseconds length) {
  std::vector<LinkShares> slots(kLinkSlots, LinkShares{});
  const double width = static_cast<double>(length) / kLinkSlots;
  const std::size_t groups = load.groups.size();
  for (std::size_t i = 0; i + 1 < load.times.size(); ++i) {
    const double begin = static_cast<double>(load.times[i]) / width,
                 end = static_cast<double>(load.times[i + 1]) / width;
    for (auto s = static_cast<std::size_t>(begin); s < kLinkSlots && static_cast<double>(s) < end; ++s) {
      const auto left = static_cast<double>(s);
      const double within = std::min(end, left + 1) - std::max(begin, left);
      for (std::size_t g = 0; g < groups; ++g)
        slots[s][static_cast<std::size_t>(kind_of_transfers(load.groups[g]))] += within * load.shares[i * groups + g];
    }
  }
  return slots;
}

// The outline of one kind's area, which lies on the areas of the kinds before it.
std::string link_outline(const std::vector<LinkShares>& slots, std::size_t kind, const PageAxis& x, const PageAxis& y) {
  const auto height = [&](std::size_t slot, std::size_t kinds) {
    double share = 0;
    for (std::size_t k = 0; k < kinds; ++k) share += slots[slot][k];
    return pixels(y.at(std::min(share, 1.0)));
  };
  std::string path;
  for (std::size_t begin = 0; begin < slots.size();) {
    const std::string top = height(begin, kind + 1), bottom = height(begin, kind);
    std::size_t end = begin + 1;
    while (end < slots.size() && height(end, kind + 1) == top && height(end, kind) == bottom) ++end;
    if (top != bottom) {
      path += fmt::format("M{} {}V{}H{}V{}Z", pixels(x.at(static_cast<double>(begin))), bottom, top,
                          pixels(x.at(static_cast<double>(end))), bottom);
    }
    begin = end;
  }
  return path;
}

// Draws one link's load with its name on the left. used: set for each kind of transfers that is drawn.
void draw_link(Drawing& d, const LinkLoad& load, Picoseconds length, double top, std::array<bool, kTimeKinds>& used) {
  const PageAxis x{0, static_cast<double>(kLinkSlots), false, kLinkLeft, kChartUnits - 10};
  const PageAxis y{0, 1, false, top + kLinkHeight, top};
  for (const double tick : {0.0, 0.5, 1.0}) {
    d.line(x.begin, y.at(tick), x.end, y.at(tick), kLineColour);
    d.text(x.begin - 8, y.at(tick) + 4, fmt::format("{:.0f} %", 100 * tick), axis_words("end"));
  }
  d.text(4, top + 12, load.name, chart_words("start", kLinkLeft - 60));
  d.text(4, top + 30, load.of, axis_words("start"));
  if (load.capacity > 0)
    d.text(4, top + 46, fmt::format("100 %: {} GB/s", grouped(load.capacity / 1e9)), axis_words("start"));
  const std::vector<LinkShares> slots = link_slots(load, length);
  for (std::size_t k = 0; k < kTimeKinds; ++k) {
    const std::string path = link_outline(slots, k, x, y);
    used[k] = used[k] || !path.empty();
    const auto kind = static_cast<TimeKind>(k);
    d.path(path, {{"fill", std::string(colour_of(kind))}}, words_of(name_of(kind)));
  }
}

std::string links_chart(const std::vector<LinkLoad>& loads, Picoseconds length) {
  Drawing d;
  std::array<bool, kTimeKinds> used{};
  double top = kLinkTop;
  for (const LinkLoad& load : loads) {
    draw_link(d, load, length, top, used);
    top += kLinkHeight + kLinkGap;
  }
  const double bottom = top - kLinkGap;
  const Scale unit = time_scale(seconds(length));
  const PageAxis time{0, seconds(length) / unit.size, false, kLinkLeft, kChartUnits - 10};
  for (const double tick : ticks(time, 8)) {
    d.line(time.at(tick), bottom, time.at(tick), bottom + 5, kFaintColour);
    d.text(time.at(tick), bottom + 18, tick_text(tick), axis_words("middle"));
  }
  d.text((time.begin + time.end) / 2, bottom + kLinkAxis - 6, fmt::format("time, {}", unit.unit),
         chart_words("middle"));
  std::vector<LegendEntry> legend;
  for (std::size_t k = 0; k < kTimeKinds; ++k) {
    const auto kind = static_cast<TimeKind>(k);
    std::string name = words_of(name_of(kind));
    if (name.starts_with("exposed ")) name = name.substr(8) + " transfers";
    if (used[k]) legend.push_back({std::string(colour_of(kind)), name});
  }
  return chart_markup(inline_svg(d, kChartUnits, bottom + kLinkAxis, "load of the fullest links over time"),
                      legend_markup(legend),
                      fmt::format("How full the fullest link of each kind is, as the mean over each {} of the time.",
                                  time_text(seconds(length) / kLinkSlots)));
}

}  // namespace

std::string links_markup(const std::vector<LinkLoad>& loads, Picoseconds length) {
  if (loads.empty() || length <= 0) return "";
  Table t{{{"the fullest", "", Align::left},
           {"which", "", Align::left},
           {"carries", "GB/s"},
           {"mean", "GB/s"},
           {"mean", "%"},
           {"peak", "%"}},
          {}};
  for (const LinkLoad& load : loads) {
    const auto rate = [&](double share) {
      return load.capacity > 0 ? fmt::format("{:.1f}", share * load.capacity / 1e9) : "-";
    };
    t.rows.push_back({load.name, load.of, rate(1), rate(load.mean), fmt::format("{:.1f}", 100 * load.mean),
                      fmt::format("{:.1f}", 100 * load.peak)});
  }
  return links_chart(loads, length) + table_markup(t);
}

}  // namespace orrery
