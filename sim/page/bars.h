#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/print/text.h"

namespace orrery {

// One part of a stacked bar: a name, its share of the whole (0 to 1), the figure as text, and a colour.
struct BarPart {
  std::string name;
  double share = 0;
  std::string figure, colour;
};
// One bar, as SVG, that shows how parts make up a whole, with a legend that has each part's figure and share. Parts
// that are wide enough have their names in them. label: a description of the bar for readers who do not see it.
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label);

// One of the pieces that a bar is divided into: its length in the unit of the bar's value, and its colour.
struct BarPiece {
  double value = 0;
  std::string colour;
};
// One bar of a bar chart: a name, a value and, where low < high, the interval around the value. figure: the text at the
// end of the bar; pieces: the parts that add up to the value, from the left.
struct Bar {
  std::string name;
  double value = 0, low = 0, high = 0;
  std::string figure;
  std::vector<BarPiece> pieces;
};
// A chart with a horizontal bar for each value, one below the other and all beginning at zero. Each bar has a whisker
// from `low` to `high`; the axis is in the unit of `scale`. label: a description of the chart for readers who do not
// see it.
std::string bar_chart(const std::vector<Bar>& bars, const Scale& scale, std::string_view label);

}  // namespace orrery
