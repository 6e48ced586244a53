// Draws predicted against measured step times as a scatter plot in SVG.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "sim/published/predict.h"

namespace orrery {
namespace {

constexpr double kSide = 640, kLeft = 70, kTop = 30;  // side of the plot, left margin and top margin, in pixels
constexpr double kWidth = kLeft + kSide + 210, kHeight = kTop + kSide + 60;

constexpr std::array<std::string_view, 10> kColours = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                                       "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};

// The range of seconds that both axes show; the axes are logarithmic.
struct PlotAxis {
  double first = 0.1, last = 10;

  double along(double seconds) const { return std::log(seconds / first) / std::log(last / first) * kSide; }
  double across(double seconds) const { return kLeft + along(seconds); }
  double up(double seconds) const { return kTop + kSide - along(seconds); }
};

bool is_shown(const PublishedCase& c) { return c.reason.empty() && c.row.doubtful.empty() && c.row.step_time_s; }

PlotAxis axis_of(const std::vector<PublishedCase>& cases) {
  constexpr double kMargin = 1.2;
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const PublishedCase& c : cases) {
    if (!is_shown(c)) continue;
    least = std::min({least, *c.row.step_time_s, c.step_time_s});
    most = std::max({most, *c.row.step_time_s, c.step_time_s});
  }
  return most > 0 ? PlotAxis{least / kMargin, most * kMargin} : PlotAxis{};
}

std::string stroke(double x1, double y1, double x2, double y2, std::string_view style) {
  return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2, style);
}

std::string label(double x, double y, std::string_view style, std::string_view words) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, words);
}

// The ticks of an axis in seconds: powers of ten and, if these are few, 2 and 5 times each power.
std::vector<double> ticks(const PlotAxis& s) {
  std::vector<double> result;
  for (double decade = std::pow(10, std::floor(std::log10(s.first))); decade <= s.last; decade *= 10) {
    for (const double part : {1.0, 2.0, 5.0}) {
      const double tick = decade * part;
      if (tick >= s.first && tick <= s.last && (part == 1 || s.last < 50 * s.first)) result.push_back(tick);
    }
  }
  return result;
}

// Draws the lines of the ticks, the diagonal (predicted = measured), and lines 10 % above and below the diagonal.
std::string axes(const PlotAxis& s) {
  std::string svg;
  for (const double tick : ticks(s)) {
    svg += stroke(s.across(tick), kTop, s.across(tick), kTop + kSide, "stroke=\"#ddd\"");
    svg += stroke(kLeft, s.up(tick), kLeft + kSide, s.up(tick), "stroke=\"#ddd\"");
    svg += label(s.across(tick), kTop + kSide + 20, "text-anchor=\"middle\"", fmt::format("{:g} s", tick));
    svg += label(kLeft - 8, s.up(tick) + 4, "text-anchor=\"end\"", fmt::format("{:g} s", tick));
  }
  svg += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"none\" stroke=\"#ddd\"/>\n", kLeft,
                     kTop, kSide, kSide);
  svg += stroke(s.across(s.first), s.up(s.first), s.across(s.last), s.up(s.last), "stroke=\"black\"");
  for (const double off : {0.9, 1.1}) {
    const double from = off < 1 ? s.first / off : s.first, to = off > 1 ? s.last / off : s.last;
    svg += stroke(s.across(from), s.up(from * off), s.across(to), s.up(to * off),
                  "stroke=\"black\" stroke-dasharray=\"3 4\"");
  }
  svg += label(kLeft + kSide / 2, kHeight - 12, "text-anchor=\"middle\"", "measured step time");
  return svg + label(kLeft, kTop - 10, "", "predicted step time; dashes: 10 % off");
}

}  // namespace

std::string scatter_svg(const std::vector<PublishedCase>& cases) {
  const PlotAxis axis = axis_of(cases);
  std::map<std::string, std::string> dots;
  for (const PublishedCase& c : cases) {
    if (!is_shown(c)) continue;
    dots[c.row.source] += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.5\"><title>{}</title></circle>\n",
                                      axis.across(*c.row.step_time_s), axis.up(c.step_time_s), c.row.id);
  }
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
      kWidth, kHeight);
  svg += axes(axis);
  std::size_t i = 0;
  for (const auto& [source, circles] : dots) {
    const std::string style = fmt::format("fill=\"{}\" fill-opacity=\"0.6\"{}", kColours[i % kColours.size()],
                                          i < kColours.size() ? "" : " stroke=\"black\" stroke-width=\"0.6\"");
    const double y = kTop + 10 + 18 * static_cast<double>(i++);
    svg += fmt::format("<g {}>\n{}", style, circles);
    svg += fmt::format("<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"4\"/>\n</g>\n", kLeft + kSide + 25, y - 4);
    svg += label(kLeft + kSide + 38, y, "", source);
  }
  return svg + "</svg>\n";
}

}  // namespace orrery
