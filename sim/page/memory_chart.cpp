#include "sim/page/memory_chart.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "sim/page/axis.h"
#include "sim/page/chart.h"
#include "sim/page/colours.h"
#include "sim/page/legend.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr std::int64_t kSlots = 450;  // number of intervals of equal length into which the chart divides the time
constexpr double kChartHeight = 370, kChartLeft = 64, kChartTop = 18, kChartBottom = 54;

using Sums = std::array<Bytes, kCategories>;

// The memory categories in the order in which they are stacked, lowest first: long-lived memory lies below memory that
// is allocated and freed during the step.
constexpr std::array<Category, kCategories> kUpwards = {Category::parameters, Category::gradients,
                                                        Category::optimizer,  Category::buffers,
                                                        Category::workspace,  Category::activations};

Bytes sum_of(const Sums& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

// For each of the intervals of equal length into which the chart divides the time, the bytes of the sample that has the
// most bytes in the interval.
std::vector<Sums> by_slot(const MemoryChart& chart) {
  std::vector<Sums> slots(kSlots);
  std::size_t next = 0;
  Sums now = chart.samples.front().bytes;
  for (std::int64_t slot = 0; slot < kSlots; ++slot) {
    Sums most = now;
    while (next < chart.samples.size() && chart.samples[next].time < chart.length / kSlots * (slot + 1)) {
      now = chart.samples[next++].bytes;
      if (sum_of(now) > sum_of(most)) most = now;
    }
    slots[slot] = most;
  }
  return slots;
}

// The outline of one category's area as an SVG path: along its upper edge and back along its lower one. x: the axis of
// the intervals of time; y: the axis of GiB.
std::string outline(const std::vector<Sums>& slots, std::size_t level, const PageAxis& x, const PageAxis& y) {
  const auto height = [&](std::size_t slot, std::size_t levels) {
    Bytes bytes = 0;
    for (std::size_t i = 0; i < levels; ++i) bytes += slots[slot][static_cast<std::size_t>(kUpwards[i])];
    return pixels(y.at(static_cast<double>(bytes) / kGiB));
  };
  const auto at = [&](std::size_t slot) { return pixels(x.at(static_cast<double>(slot))); };
  std::string there, back;
  for (std::size_t begin = 0; begin < slots.size();) {
    const std::string top = height(begin, level + 1), bottom = height(begin, level);
    std::size_t end = begin + 1;
    while (end < slots.size() && height(end, level + 1) == top && height(end, level) == bottom) ++end;
    there += fmt::format("{}{} {}H{}", there.empty() ? "M" : "L", at(begin), top, at(end));
    back = fmt::format("L{} {}H{}", at(end), bottom, at(begin)) + back;
    begin = end;
  }
  return there + back + 'Z';
}

// The axes of the chart: x in numbers of intervals of time (slots), x again in seconds or a smaller unit, and y in GiB.
struct MemoryAxes {
  PageAxis slots, time, GiB;
  Scale unit;
};

MemoryAxes axes_of(const MemoryChart& chart, Bytes peak) {
  const double top = 1.08 * static_cast<double>(std::max({peak, chart.held, chart.capacity})) / kGiB;
  const PageAxis slots{0, kSlots, false, kChartLeft, kChartUnits - 10};
  const Scale unit = time_scale(seconds(chart.length));
  return {slots,
          {0, seconds(chart.length) / unit.size, false, slots.begin, slots.end},
          {0, top, false, kChartHeight - kChartBottom, kChartTop},
          unit};
}

void draw_memory_axes(Drawing& d, const MemoryAxes& a) {
  for (const double tick : ticks(a.GiB)) {
    d.line(a.slots.begin, a.GiB.at(tick), a.slots.end, a.GiB.at(tick), kLineColour);
    d.text(a.slots.begin - 8, a.GiB.at(tick) + 4, tick_text(tick), axis_words("end"));
  }
  for (const double tick : ticks(a.time, 8)) {
    d.line(a.time.at(tick), a.GiB.begin, a.time.at(tick), a.GiB.begin + 5, kFaintColour);
    d.text(a.time.at(tick), a.GiB.begin + 18, tick_text(tick), axis_words("middle"));
  }
  d.text(4, 12, "GiB", axis_words("start"));
  d.text((a.slots.begin + a.slots.end) / 2, kChartHeight - 12, fmt::format("time of a step, {}", a.unit.unit),
         chart_words("middle"));
}

// Draws the area of each category of memory. Returns legend entries with the most bytes that each category takes.
std::vector<LegendEntry> draw_areas(Drawing& d, const std::vector<Sums>& slots, const MemoryAxes& a) {
  std::vector<LegendEntry> legend;
  for (std::size_t level = 0; level < kUpwards.size(); ++level) {
    const Category c = kUpwards[level];
    Bytes most = 0;
    for (const Sums& s : slots) most = std::max(most, s[static_cast<std::size_t>(c)]);
    if (most == 0) continue;
    d.path(outline(slots, level, a.slots, a.GiB), {{"fill", std::string(colour_of(c))}});
    legend.push_back(
        {std::string(colour_of(c)), fmt::format("{}, at most {}", name_of(c), memory_text(static_cast<double>(most)))});
  }
  return legend;
}

// Draws two labelled horizontal lines: the most memory of the GPU that the job takes, and the memory that the GPU has.
void draw_limits(Drawing& d, const MemoryChart& chart, const MemoryAxes& a) {
  const auto across = [&](Bytes bytes, std::string_view colour, std::string_view dashes, const std::string& words,
                          bool above) {
    const double at = a.GiB.at(static_cast<double>(bytes) / kGiB);
    d.line(a.slots.begin, at, a.slots.end, at, colour, 2, dashes);
    d.text(a.slots.end - 4, above ? at - 6 : at + 16, words, {.size = 13, .anchor = "end", .fill = colour});
  };
  if (chart.held > 0)
    across(chart.held, kInkColour, "6 4",
           fmt::format("taken of the GPU at most: {}", memory_text(static_cast<double>(chart.held))),
           chart.held >= chart.capacity || chart.capacity - chart.held > chart.capacity / 12);
  across(chart.capacity, kLimitColour, "",
         fmt::format("the GPU has {}", memory_text(static_cast<double>(chart.capacity))), chart.capacity >= chart.held);
}

}  // namespace

std::string memory_chart(const MemoryChart& chart) {
  if (chart.samples.empty() || chart.length <= 0) return "";
  const std::vector<Sums> slots = by_slot(chart);
  Bytes peak = 0;
  for (const Sums& s : slots) peak = std::max(peak, sum_of(s));
  const MemoryAxes axes = axes_of(chart, peak);
  Drawing d;
  draw_memory_axes(d, axes);
  const std::vector<LegendEntry> legend = draw_areas(d, slots, axes);
  draw_limits(d, chart, axes);
  return chart_markup(inline_svg(d, kChartUnits, kChartHeight, "memory of the fullest GPU over a step"),
                      legend_markup(legend),
                      "Memory is taken when the host issues work, which may be long before the GPU does it.");
}

}  // namespace orrery
