#include "sim/page/memory_chart.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "sim/page/axis.h"
#include "sim/page/colours.h"
#include "sim/page/legend.h"
#include "sim/page/svg.h"
#include "sim/print/text.h"

namespace orrery {
namespace {

constexpr std::int64_t kSlots = 450;  // slots of time of the chart
constexpr double kChartHeight = 370, kChartLeft = 64, kChartTop = 18, kChartBottom = 54;

using Sums = std::array<Bytes, kCategories>;

// The order from below, so that what lasts lies below what comes and goes.
constexpr std::array<Category, kCategories> kUpwards = {Category::parameters, Category::gradients,
                                                        Category::optimizer,  Category::buffers,
                                                        Category::workspace,  Category::activations};

Bytes sum_of(const Sums& bytes) { return std::accumulate(bytes.begin(), bytes.end(), Bytes{0}); }

// [slot of time]: the bytes of the sample that has the most of those that hold in the slot.
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

// The outline of a category's area, in slots and GiB: along its upper edge and back along its lower one.
std::string outline(const std::vector<Sums>& slots, std::size_t level, const PageAxis& x, const PageAxis& y) {
  const auto height = [&](std::size_t slot, std::size_t levels) {
    Bytes bytes = 0;
    for (std::size_t i = 0; i < levels; ++i) bytes += slots[slot][static_cast<std::size_t>(kUpwards[i])];
    return coordinate(y.at(static_cast<double>(bytes) / 1073741824.0));
  };
  const auto at = [&](std::size_t slot) { return coordinate(x.at(static_cast<double>(slot))); };
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

}  // namespace

std::string memory_chart(const MemoryChart& chart) {
  if (chart.samples.empty() || chart.length <= 0) return "";
  constexpr double kGiB = 1073741824.0;
  const std::vector<Sums> slots = by_slot(chart);
  Sums most{};
  Bytes peak = 0;
  for (const Sums& s : slots) {
    for (std::size_t c = 0; c < s.size(); ++c) most[c] = std::max(most[c], s[c]);
    peak = std::max(peak, sum_of(s));
  }
  const double top = 1.08 * static_cast<double>(std::max({peak, chart.held, chart.capacity})) / kGiB;
  const PageAxis x{0, kSlots, false, kChartLeft, kChartUnits - 10};
  const PageAxis y{0, top, false, kChartHeight - kChartBottom, kChartTop};
  const Scale unit = time_scale(seconds(chart.length));
  const PageAxis time{0, seconds(chart.length) / unit.size, false, x.begin, x.end};
  ChartDrawing d(kChartUnits, kChartHeight);
  for (const double tick : ticks(y)) {
    d.line(x.begin, y.at(tick), x.end, y.at(tick), kLineColour);
    d.text(x.begin - 8, y.at(tick) + 4, tick_text(tick), Anchor::end, 12, 0, kFaintColour);
  }
  for (const double tick : ticks(time, 8)) {
    d.line(time.at(tick), y.begin, time.at(tick), y.begin + 5, kFaintColour);
    d.text(time.at(tick), y.begin + 18, tick_text(tick), Anchor::middle, 12, 0, kFaintColour);
  }
  std::vector<LegendEntry> legend;
  for (std::size_t level = 0; level < kUpwards.size(); ++level) {
    const Category c = kUpwards[level];
    if (most[static_cast<std::size_t>(c)] == 0) continue;
    d.path(outline(slots, level, x, y), fmt::format("fill=\"{}\"", colour_of(c)));
    legend.push_back(
        {std::string(colour_of(c)), fmt::format("{}, at most {}", name_of(c),
                                                memory_text(static_cast<double>(most[static_cast<std::size_t>(c)])))});
  }
  const auto across = [&](Bytes bytes, std::string_view colour, std::string_view dashes, const std::string& words,
                          bool above) {
    const double at = y.at(static_cast<double>(bytes) / kGiB);
    d.line(x.begin, at, x.end, at, colour, 2, dashes);
    d.text(x.end - 4, above ? at - 6 : at + 16, words, Anchor::end, 13, 0, colour);
  };
  if (chart.held > 0)
    across(chart.held, "#20242c", "6 4",
           fmt::format("taken of the GPU at most: {}", memory_text(static_cast<double>(chart.held))),
           chart.held >= chart.capacity || chart.capacity - chart.held > chart.capacity / 12);
  across(chart.capacity, kLimitColour, "",
         fmt::format("the GPU has {}", memory_text(static_cast<double>(chart.capacity))), chart.capacity >= chart.held);
  d.text(4, 12, "GiB", Anchor::start, 12, 0, kFaintColour);
  d.text((x.begin + x.end) / 2, kChartHeight - 12, fmt::format("time of a step, {}", unit.unit), Anchor::middle);
  return chart_markup(d.svg("memory of the fullest GPU over a step"), legend_markup(legend),
                      "Memory is taken when the host issues work, which may be long before the GPU does it.");
}

}  // namespace orrery
