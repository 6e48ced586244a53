#pragma once

#include <string>
#include <vector>

namespace orrery {

// The axis of a chart: the values from `first` to `last`, linear or logarithmic, and where the chart begins and ends.
struct PageAxis {
  double first = 0, last = 1;
  bool logarithmic = false;
  double begin = 0, end = 1;  // coordinates of `first` and `last`; begin > end for an axis that goes up

  double at(double value) const;  // coordinate in the chart of a value on the axis
};

// Round values at which an axis is marked. A linear axis has about `count` marks, and the distance between them is 1, 2
// or 5 times a power of ten. A logarithmic axis is marked at powers of ten or, where its range is short, also at 2 and
// 5 times each power; where this gives fewer than three marks, it is marked as a linear axis is.
std::vector<double> ticks(const PageAxis& axis, int count = 6);

// The value of a tick as text, without needless decimals: "0.5", "1000".
std::string tick_text(double value);

}  // namespace orrery
