#pragma once

#include <string_view>

#include "sim/print/svg.h"

namespace orrery {

// The width of a chart in its own units. It is chosen such that letters 13 units high are readable where the page is
// printed.
inline constexpr double kChartUnits = 880;

// The text style of a chart's labels. anchor: as in TextStyle; room: the width to which labels are cut, 0 for no limit.
TextStyle chart_words(std::string_view anchor, double room = 0);
// The text style of the figures along a chart's axis. anchor: as in TextStyle.
TextStyle axis_words(std::string_view anchor);

// Draws a mark of one of four shapes (circle, square, triangle, diamond; `shape` modulo 4) around a point.
void draw_mark(Drawing& drawing, double x, double y, std::size_t shape, std::string_view fill, std::string_view hint);

// Returns black or white, whichever is easier to read on a colour "#rrggbb".
std::string_view ink_on(std::string_view colour);

}  // namespace orrery
