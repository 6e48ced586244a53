#pragma once

#include <string>
#include <string_view>

namespace orrery {

// The width of a chart, in the units of its drawing: letters of 13 units are readable where the page is printed.
inline constexpr double kChartUnits = 880;

enum class Anchor : unsigned char { start, middle, end };

// A drawing as inline SVG, in units of which the page's width has `width`. Coordinates are rounded to a tenth.
class ChartDrawing {
 public:
  ChartDrawing(double width, double height) : width_(width), height_(height) {}

  // fill, stroke: colours as in CSS; title: plain text that a pointer over the shape shows, "" for none.
  void rectangle(double x, double y, double width, double height, std::string_view fill, std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, std::string_view stroke, double thickness = 1,
            std::string_view dashes = {});
  // path: the commands of an SVG path. attributes: markup, as fill="#123456"; for a path in other units a transform.
  void path(std::string_view path, std::string_view attributes);
  // words: plain text; size: height of the letters. The text is one line and is cut to `room` units (0: no limit), with
  // an ellipsis and the whole text as a title.
  void text(double x, double y, std::string_view words, Anchor anchor = Anchor::start, double size = 13,
            double room = 0, std::string_view fill = "#20242c");
  // A mark of one of several shapes (circle, square, triangle, diamond), around a point.
  void mark(double x, double y, std::size_t shape, std::string_view fill, std::string_view title = {});

  // The drawing as an <svg> element; label: what it shows, in words, for readers who do not see it.
  std::string svg(std::string_view label) const;

 private:
  double width_, height_;
  std::string body_;
};

// A coordinate as text, rounded to a tenth: "12.5", "7".
std::string coordinate(double value);

// A guess of the width of a text with letters of a size, on the safe side: what font a browser takes is not known.
double text_width(std::string_view text, double size);

// Black or white, whichever is easier to read on a colour "#rrggbb".
std::string_view ink_on(std::string_view colour);

}  // namespace orrery
