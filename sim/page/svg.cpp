#include "sim/page/svg.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "sim/page/html.h"
#include "sim/print/table.h"

namespace orrery {
namespace {

constexpr std::string_view kInk = "#20242c", kWhite = "#ffffff";

std::string title_markup(std::string_view title) { return title.empty() ? "" : element("title", escaped(title)); }

// A shape: an element without content, or with a title.
std::string shape_markup(std::string_view name, std::string_view attributes, std::string_view title) {
  if (title.empty()) return fmt::format("<{} {}/>\n", name, attributes);
  return element(name, title_markup(title), attributes) + '\n';
}

// The text without its last letters, so that it has at most so many; no UTF-8 letter is cut.
std::string first_letters(std::string_view text, std::size_t letters) {
  std::size_t bytes = 0;
  for (std::size_t n = 0; bytes < text.size(); ++bytes) {
    if ((static_cast<unsigned char>(text[bytes]) & 0xc0U) != 0x80 && n++ == letters) break;
  }
  return std::string(text.substr(0, bytes));
}

}  // namespace

std::string coordinate(double value) {
  const double tenths = std::round(value * 10);
  return tenths == 0 ? "0" : fmt::format("{:.{}f}", tenths / 10, std::fmod(tenths, 10) == 0 ? 0 : 1);
}

double text_width(std::string_view text, double size) {
  constexpr double kLetter = 0.58;  // mean width of a letter, in heights, of wide fonts (DejaVu Sans, Verdana)
  return kLetter * size * static_cast<double>(width_of(text));
}

std::string_view ink_on(std::string_view colour) {
  std::array<int, 3> rgb{};
  for (std::size_t i = 0; i < rgb.size() && colour.size() == 7; ++i)
    std::from_chars(colour.data() + 1 + 2 * i, colour.data() + 3 + 2 * i, rgb[i], 16);
  // The weights are those of luma in ITU-R BT.601.
  return 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140 ? kInk : kWhite;
}

void Drawing::rectangle(double x, double y, double width, double height, std::string_view fill,
                        std::string_view title) {
  body_ += shape_markup("rect",
                        fmt::format("x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"", coordinate(x),
                                    coordinate(y), coordinate(width), coordinate(height), fill),
                        title);
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view stroke, double thickness,
                   std::string_view dashes) {
  const std::string dashed = dashes.empty() ? "" : fmt::format(" stroke-dasharray=\"{}\"", dashes);
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n",
                       coordinate(x1), coordinate(y1), coordinate(x2), coordinate(y2), stroke, coordinate(thickness),
                       dashed);
}

void Drawing::path(std::string_view path, std::string_view attributes) {
  if (!path.empty()) body_ += fmt::format("<path d=\"{}\" {}/>\n", path, attributes);
}

void Drawing::text(double x, double y, std::string_view words, Anchor anchor, double size, double room,
                   std::string_view fill) {
  constexpr std::string_view kAnchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  const bool cut = room > 0 && text_width(words, size) > room;
  std::string shown(words);
  if (cut)
    shown = first_letters(words, static_cast<std::size_t>(std::max(1.0, room / text_width("n", size) - 1))) + "…";
  body_ += element("text", (cut ? title_markup(words) : "") + escaped(shown),
                   fmt::format("x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"{}", coordinate(x), coordinate(y),
                               coordinate(size), fill, kAnchors[static_cast<std::size_t>(anchor)])) +
           '\n';
}

void Drawing::mark(double x, double y, std::size_t shape, std::string_view fill, std::string_view title) {
  constexpr double kHalf = 4.5;  // of the mark's width
  const std::string style =
      fmt::format("fill=\"{}\" fill-opacity=\"0.75\" stroke=\"#20242c\" stroke-width=\"0.5\"", fill);
  const auto outline = [&](std::initializer_list<std::pair<double, double>> corners) {
    std::string d;
    for (const auto& [dx, dy] : corners)
      d += fmt::format("{}{} {}", d.empty() ? "M" : "L", coordinate(x + kHalf * dx), coordinate(y + kHalf * dy));
    return shape_markup("path", fmt::format("d=\"{}Z\" {}", d, style), title);
  };
  switch (shape % 4) {
    case 0:
      body_ += shape_markup("circle",
                            fmt::format("cx=\"{}\" cy=\"{}\" r=\"4\" {}", coordinate(x), coordinate(y), style), title);
      break;
    case 1:
      body_ += outline({{-0.8, -0.8}, {0.8, -0.8}, {0.8, 0.8}, {-0.8, 0.8}});
      break;
    case 2:
      body_ += outline({{0, -1}, {1, 0.8}, {-1, 0.8}});
      break;
    default:
      body_ += outline({{0, -1.1}, {1.1, 0}, {0, 1.1}, {-1.1, 0}});
  }
}

std::string Drawing::svg(std::string_view label) const {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      coordinate(width_), coordinate(height_), escaped(label), body_);
}

}  // namespace orrery
