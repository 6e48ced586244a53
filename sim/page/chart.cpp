#include "sim/page/chart.h"

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "sim/page/colours.h"

namespace orrery {

TextStyle chart_words(std::string_view anchor, double room) {
  return {.size = 13, .anchor = anchor, .fill = kInkColour, .room = room};
}

TextStyle axis_words(std::string_view anchor) { return {.size = 12, .anchor = anchor, .fill = kFaintColour}; }

void draw_mark(Drawing& drawing, double x, double y, std::size_t shape, std::string_view fill, std::string_view hint) {
  constexpr double kHalf = 4.5;  // half of a mark's width, in units of the chart
  using Corners = std::array<std::pair<double, double>, 4>;
  // The corners of a square, a triangle (whose last corner is its first again) and a diamond, in units of half a mark's
  // width.
  constexpr std::array<Corners, 3> kCorners = {Corners{{{-0.8, -0.8}, {0.8, -0.8}, {0.8, 0.8}, {-0.8, 0.8}}},
                                               Corners{{{0, -1}, {1, 0.8}, {-1, 0.8}, {0, -1}}},
                                               Corners{{{0, -1.1}, {1.1, 0}, {0, 1.1}, {-1.1, 0}}}};
  const Attributes style = {{"fill", std::string(fill)},
                            {"fill-opacity", "0.75"},
                            {"stroke", std::string(kInkColour)},
                            {"stroke-width", "0.5"}};
  if (shape % 4 == 0) return drawing.circle(x, y, 4, style, hint);
  std::string outline;
  for (const auto& [dx, dy] : kCorners[shape % 4 - 1])
    outline += fmt::format("{}{} {}", outline.empty() ? "M" : "L", pixels(x + kHalf * dx), pixels(y + kHalf * dy));
  drawing.path(outline + 'Z', style, hint);
}

std::string_view ink_on(std::string_view colour) {
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < rgb.size() && colour.size() == 7; ++i)
    std::from_chars(colour.data() + 1 + 2 * i, colour.data() + 3 + 2 * i, rgb[i], 16);
  // The brightness of the colour, with the weights of red, green and blue in ITU-R BT.601 (luma).
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? kInkColour : "#ffffff";
}

}  // namespace orrery
