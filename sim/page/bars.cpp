#include "sim/page/bars.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim/page/axis.h"
#include "sim/page/chart.h"
#include "sim/page/colours.h"
#include "sim/page/legend.h"

namespace orrery {
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label) {
  constexpr double kTall = 44, kGap = 6;
  Drawing d;
  std::vector<LegendEntry> legend;
  double sum = 0, x = 0;
  for (const BarPart& p : parts) sum += p.share;
  for (const BarPart& p : parts) {
    const double width = sum > 0 ? p.share / sum * kChartUnits : 0;
    const std::string percent = percent_text(p.share);
    d.rect({x, 0, width, kTall}, {{"fill", p.colour}}, fmt::format("{}: {}, {}", p.name, p.figure, percent));
    TextStyle style = chart_words("middle");
    style.fill = ink_on(p.colour);
    if (text_width(p.name, style) + kGap < width) d.text(x + width / 2, kTall / 2 - 3, p.name, style);
    if (text_width(percent, style) + kGap < width) d.text(x + width / 2, kTall / 2 + 14, percent, style);
    legend.push_back({p.colour, fmt::format("{} {}, {}", p.name, p.figure, percent)});
    x += width;
  }
  return chart_markup(inline_svg(d, kChartUnits, kTall, label), legend_markup(legend), "");
}

std::string bar_chart(const std::vector<Bar>& bars, const Scale& scale, std::string_view label) {
  constexpr double kRow = 30, kThick = 18, kNames = 250, kFigures = 165, kAxis = 34;
  const double height = kRow * static_cast<double>(bars.size()) + kAxis;
  PageAxis axis{0, 0, false, kNames, kChartUnits - kFigures};
  for (const Bar& b : bars) axis.last = std::max({axis.last, b.value / scale.size, b.high / scale.size});
  if (axis.last <= 0) return "";
  Drawing d;
  for (const double tick : ticks(axis)) {
    d.line(axis.at(tick), 0, axis.at(tick), height - kAxis + 4, kLineColour);
    d.text(axis.at(tick), height - kAxis + 20, tick_text(tick), axis_words("middle"));
  }
  d.text(axis.end + 12, height - kAxis + 20, scale.unit, axis_words("start"));
  double y = 0;
  for (const Bar& b : bars) {
    const double middle = y + kRow / 2, end = axis.at(b.value / scale.size);
    d.text(kNames - 10, middle + 4.5, b.name, chart_words("end", kNames - 14));
    double from = 0;
    for (const BarPiece& piece : b.pieces) {
      const double left = axis.at(from / scale.size), right = axis.at((from + piece.value) / scale.size);
      d.rect({left, middle - kThick / 2, right - left, kThick}, {{"fill", piece.colour}});
      from += piece.value;
    }
    double last = end;
    if (b.low < b.high) {
      const double low = axis.at(b.low / scale.size), high = axis.at(b.high / scale.size);
      d.line(low, middle, high, middle, kInkColour, 1.5);
      for (const double x : {low, high}) d.line(x, middle - 5, x, middle + 5, kInkColour, 1.5);
      last = std::max(last, high);
    }
    d.text(last + 8, middle + 4.5, b.figure, chart_words("start", kChartUnits - last - 8));
    y += kRow;
  }
  return inline_svg(d, kChartUnits, height, label);
}

}  // namespace orrery
