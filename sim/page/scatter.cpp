#include "sim/page/scatter.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "sim/page/axis.h"
#include "sim/page/chart.h"
#include "sim/page/colours.h"
#include "sim/page/legend.h"

namespace orrery {
namespace {

constexpr double kPlotLeft = 74, kPlotTop = 26, kPlotBottom = 50;
constexpr std::string_view kShapes[] = {"●", "■", "▲", "◆"};
constexpr std::size_t kColoursOfSeries = 8;

// The points that are drawn, and the axes with the ranges of their coordinates.
struct Plotted {
  std::vector<const ScatterPoint*> points;
  PageAxis x, y;
  bool shows_limit = false;
};

void widen(PageAxis& axis) {
  if (axis.logarithmic) {
    axis.first /= 1.2;
    axis.last *= 1.2;
  } else {
    axis.first = 0;
    axis.last = axis.last > 0 ? 1.08 * axis.last : 1;
  }
}

Plotted plotted(const Scatter& s) {
  constexpr double kInfinite = std::numeric_limits<double>::infinity();
  Plotted p;
  p.x = p.y = {kInfinite, -kInfinite, s.logarithmic};
  for (const ScatterPoint& point : s.points) {
    if (s.logarithmic && (!(point.x > 0) || !(point.y > 0))) continue;
    p.points.push_back(&point);
    p.x.first = std::min(p.x.first, point.x);
    p.x.last = std::max(p.x.last, point.x);
    p.y.first = std::min(p.y.first, point.y);
    p.y.last = std::max(p.y.last, point.y);
  }
  // The limit line is left out where it lies farther right than this multiple of the largest x, since all points would
  // then lie at the left edge.
  constexpr double kFar = 3;
  p.shows_limit = s.x_limit > 0 && s.x_limit < kFar * p.x.last;
  if (p.shows_limit) p.x.last = std::max(p.x.last, s.x_limit);
  if (s.equal) {
    p.x.first = p.y.first = std::min(p.x.first, p.y.first);
    p.x.last = p.y.last = std::max(p.x.last, p.y.last);
  }
  widen(p.x);
  widen(p.y);
  const double side = s.equal ? 540 : 340;
  p.x.begin = kPlotLeft;
  p.x.end = s.equal ? kPlotLeft + side : kChartUnits - 20;
  p.y.begin = kPlotTop + side;
  p.y.end = kPlotTop;
  return p;
}

void draw_axes(Drawing& d, const Plotted& p, const Scatter& s) {
  for (const double tick : ticks(p.x)) {
    d.line(p.x.at(tick), p.y.begin, p.x.at(tick), p.y.end, kLineColour);
    d.text(p.x.at(tick), p.y.begin + 18, tick_text(tick), axis_words("middle"));
  }
  for (const double tick : ticks(p.y)) {
    d.line(p.x.begin, p.y.at(tick), p.x.end, p.y.at(tick), kLineColour);
    d.text(p.x.begin - 8, p.y.at(tick) + 4, tick_text(tick), axis_words("end"));
  }
  d.text((p.x.begin + p.x.end) / 2, p.y.begin + 40, s.x_name, chart_words("middle"));
  d.text(4, kPlotTop - 10, s.y_name, chart_words("start"));
}

void draw_diagonal(Drawing& d, const PageAxis& x, const PageAxis& y) {
  d.line(x.at(x.first), y.at(x.first), x.at(x.last), y.at(x.last), kInkColour);
  if (!x.logarithmic) return;
  for (const double off : {0.9, 1.1}) {
    const double from = off < 1 ? x.first / off : x.first, to = off > 1 ? x.last / off : x.last;
    d.line(x.at(from), y.at(from * off), x.at(to), y.at(to * off), kInkColour, 1, "3 4");
  }
}

}  // namespace

std::string scatter_markup(const Scatter& s, std::string_view caption) {
  const Plotted p = plotted(s);
  if (p.points.empty()) return "";
  Drawing d;
  draw_axes(d, p, s);
  if (s.equal) draw_diagonal(d, p.x, p.y);
  if (p.shows_limit) {
    d.line(p.x.at(s.x_limit), p.y.begin, p.x.at(s.x_limit), p.y.end, kLimitColour, 2);
    d.text(p.x.at(s.x_limit) - 6, p.y.end + 14, s.x_limit_name, {.size = 13, .anchor = "end", .fill = kLimitColour});
  }
  for (const ScatterPoint* point : p.points) {
    const double x = p.x.at(point->x), y = p.y.at(point->y);
    draw_mark(d, x, y, point->series / kColoursOfSeries, chart_colour(point->series), point->title);
    if (!point->number.empty()) d.text(x + 8, y - 5, point->number, {.size = 12, .fill = kInkColour});
  }
  std::vector<LegendEntry> legend;
  for (std::size_t i = 0; i < s.series.size() && s.series.size() > 1; ++i) {
    const std::size_t shape = i / kColoursOfSeries;
    legend.push_back({std::string(chart_colour(i)),
                      shape == 0 ? s.series[i] : fmt::format("{} {}", kShapes[shape % 4], s.series[i])});
  }
  return chart_markup(
      inline_svg(d, kChartUnits, p.y.begin + kPlotBottom, fmt::format("{} over {}", s.y_name, s.x_name)),
      legend_markup(legend), caption);
}

}  // namespace orrery
