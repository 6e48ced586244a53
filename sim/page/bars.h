#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/print/text.h"

namespace orrery {

// A part of a whole: a name, its share (0 to 1), the figure as text, and a colour.
struct BarPart {
  std::string name;
  double share = 0;
  std::string figure, colour;
};
// One bar that shows how parts make up a whole, with a legend that has each part's figure and share. Parts that are
// wide enough have their names in them. label: what the bar shows, in words.
std::string stacked_bar(const std::vector<BarPart>& parts, std::string_view label);

// A part of a bar: its length in the unit of the bar's value, and its colour.
struct BarPiece {
  double value = 0;
  std::string colour;
};
// A value with a name, and the interval around it where low < high. figure: the text at the end of the bar; pieces:
// what the value consists of, from the left.
struct Bar {
  std::string name;
  double value = 0, low = 0, high = 0;
  std::string figure;
  std::vector<BarPiece> pieces;
};
// A bar for each value, one below the other, from zero on, with a whisker from low to high and an axis in the unit of
// `scale`. label: what the bars show, in words.
std::string bar_chart(const std::vector<Bar>& bars, const Scale& scale, std::string_view label);

}  // namespace orrery
