#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// A point of a scatter plot. series: index of its name in Scatter::series; title: a description that the browser shows
// when the pointer is over the point; number: a short text beside the point, by which a table refers to it, "" for
// none.
struct ScatterPoint {
  double x = 0, y = 0;
  std::size_t series = 0;
  std::string title, number{};
};

// A scatter plot. A logarithmic plot leaves out points with a coordinate of zero or less. equal: whether both axes have
// the same range, with a line where x = y and dashed lines 10 % above and below it; x_limit: the x at which a vertical
// line is drawn unless it is far beyond all points, 0 for none.
struct Scatter {
  std::string x_name, y_name;
  std::vector<std::string> series;
  std::vector<ScatterPoint> points;
  bool logarithmic = false, equal = false;
  double x_limit = 0;
  std::string x_limit_name{};
};

// The plot with its legend as markup; "" if it has no point. caption: plain text.
std::string scatter_markup(const Scatter& scatter, std::string_view caption);

}  // namespace orrery
