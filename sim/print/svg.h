#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace orrery {

// A rectangle in pixels, with its upper left corner.
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

// How a line of text is drawn: height of its letters in pixels, colour, and which point of the line is given (start,
// middle or end). A text wider than `room` pixels is cut and ends with an ellipsis; a viewer then shows the whole text
// when the pointer is over it. room 0: no limit.
struct TextStyle {
  double size = 11;
  bool bold = false;
  std::string_view anchor = "start";
  std::string_view fill = "#222222";
  double room = 0;
};

// Attributes of an SVG element besides its geometry: {{"fill", "#ffffff"}, {"class", "part"}}. Values may be any text.
using Attributes = std::vector<std::pair<std::string_view, std::string>>;

// Returns an upper bound of the width of a text in pixels, for the sans-serif fonts of browsers: the widths of letters
// in DejaVu Sans, which are larger than those in Arial, Helvetica and Liberation Sans.
double text_width(std::string_view text, const TextStyle& style);

// Returns the text, or as many of its first letters as are no wider than `width` pixels together with an ellipsis.
std::string fitted(std::string_view text, double width, const TextStyle& style);

// Returns the text as lines of at most `width` pixels each, broken at spaces.
std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style);

// SVG elements that form a part of a picture, in coordinates of their own, with their extent from (0, 0), which grows
// with every element. Numbers have two decimals, so that the same picture is the same bytes everywhere.
class Drawing {
 public:
  // A hint is the text that a viewer shows when the pointer is over the element; "" for none.
  void rect(const Box& box, const Attributes& attributes, std::string_view hint = {});
  void circle(double x, double y, double radius, const Attributes& attributes, std::string_view hint = {});
  // dashes: lengths of dashes and gaps, as "6 4"; "" for a whole line.
  void line(double x1, double y1, double x2, double y2, std::string_view colour, double thickness = 1,
            std::string_view dashes = {});
  // Draws a line of text; y is its baseline.
  void text(double x, double y, std::string_view words, const TextStyle& style = {});
  // Draws a path given by SVG's path commands; nothing if these are empty. The drawing's extent does not change.
  void path(std::string_view commands, const Attributes& attributes, std::string_view hint = {});
  // Adds another drawing, moved to (x, y).
  void add(const Drawing& other, double x, double y);
  // open(): begins a group of elements (<g>) with these attributes; close(): ends the group that was opened last.
  void open(const Attributes& attributes);
  void close();
  // Adds the text that a viewer shows when the pointer is over the group that was opened last.
  void hint(std::string_view words);
  // Extends the drawing to at least this size.
  void extend(double width, double height);

  double width() const { return width_; }
  double height() const { return height_; }
  const std::string& elements() const { return elements_; }

 private:
  // Adds an element with a hint (plain text) and text (plain text) in it, both "" for none.
  void element(std::string_view name, const Attributes& attributes, std::string_view hint, std::string_view words = {});

  std::string elements_;
  double width_ = 0, height_ = 0;
};

// Returns drawings side by side in rows of at most `width` pixels, each row as high as its highest drawing.
Drawing in_rows(const std::vector<Drawing>& drawings, double width, double gap);

// Returns a complete SVG file with one drawing on white ground, `margin` pixels from each side.
std::string svg_file(const Drawing& drawing, std::string_view title, double margin);

// Returns the part of a drawing from (0, 0) to this size as an <svg> element of an HTML page, as wide as the page lets
// it be. label: what the drawing shows, in words, for readers who do not see it.
std::string inline_svg(const Drawing& drawing, double width, double height, std::string_view label);

// Returns a number with two decimals, without zeros at the end: "12.5".
std::string pixels(double value);

// Returns the colour, as "#rrggbb", of number i of n things that a picture tells apart: light enough for dark letters.
std::string colour_of(std::size_t i, std::size_t n);

}  // namespace orrery
