#include "sim/print/svg.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

#include "sim/print/xml.h"

namespace orrery {
namespace {

constexpr std::string_view kEllipsis = "\u2026";

// Returns the width of a character in units of the letters' height, as in DejaVu Sans (regular), rounded up.
double character_width(std::string_view character) {
  constexpr std::string_view kThin = "ijlI.,:;|!'", kNarrow = "tfr()[]/- \"\\", kWide = "mwMW%@";
  if (character.size() > 1) return 1.03;
  const char c = character[0];
  if (kThin.find(c) != std::string_view::npos) return 0.34;
  if (kNarrow.find(c) != std::string_view::npos) return 0.42;
  if (kWide.find(c) != std::string_view::npos) return 1.0;
  if (c >= 'A' && c <= 'Z') return 0.79;
  return c == '+' || c == '=' || c == '<' || c == '>' || c == '_' || c == '#' ? 0.84 : 0.64;
}

std::string written(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) text += fmt::format(" {}=\"{}\"", name, escaped(value));
  return text;
}

// Returns the colour with this hue (degrees), saturation and lightness (percent) as "#rrggbb", computed in whole
// numbers so that it is the same everywhere.
std::string hue_colour(std::int64_t hue, std::int64_t saturation, std::int64_t lightness) {
  const std::int64_t chroma = (100 - std::abs(2 * lightness - 100)) * saturation;  // in units of 1/10,000
  const std::int64_t between = chroma * (60 - std::abs(hue % 120 - 60)) / 60, base = lightness * 100 - chroma / 2;
  constexpr std::array<std::array<int, 3>, 6> kOrder = {
      {{{2, 1, 0}}, {{1, 2, 0}}, {{0, 2, 1}}, {{0, 1, 2}}, {{1, 0, 2}}, {{2, 0, 1}}}};
  std::string text = "#";
  for (const int part : kOrder[static_cast<std::size_t>(hue / 60 % 6)]) {
    const std::int64_t value = base + (part == 2 ? chroma : part == 1 ? between : 0);
    text += fmt::format("{:02x}", std::clamp<std::int64_t>(value * 255 / 10'000, 0, 255));
  }
  return text;
}

}  // namespace

double text_width(std::string_view text, const TextStyle& style) {
  double width = 0;
  while (!text.empty()) width += character_width(next_character(text));
  return width * style.size * (style.bold ? 1.12 : 1);
}

std::string fitted(std::string_view text, double width, const TextStyle& style) {
  if (text_width(text, style) <= width) return std::string(text);
  std::string result;
  double left = width - text_width(kEllipsis, style);
  while (!text.empty()) {
    const std::string_view c = next_character(text);
    left -= text_width(c, style);
    if (left < 0) break;
    result += c;
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result + std::string(kEllipsis);
}

std::vector<std::string> wrapped(std::string_view text, double width, const TextStyle& style) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string longer = lines.back().empty() ? word : lines.back() + ' ' + word;
    if (lines.back().empty() || text_width(longer, style) <= width)
      lines.back() = longer;
    else
      lines.push_back(word);
  }
  for (std::string& line : lines) line = fitted(line, width, style);
  return lines;
}

std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string colour_of(std::size_t i, std::size_t n) {
  static constexpr std::array<std::string_view, 8> kFew = {"#8ecae6", "#ffb703", "#90be6d", "#f28482",
                                                           "#b8a1e3", "#f6e27a", "#7fd1c0", "#e8a0c9"};
  if (n <= kFew.size()) return std::string(kFew[i % kFew.size()]);
  const auto hue = static_cast<std::int64_t>(i * 360 / n);
  return hue_colour(hue, 62, i % 2 == 0 ? 72 : 82);
}

void Drawing::element(std::string_view name, const Attributes& attributes, std::string_view hint,
                      std::string_view words) {
  elements_ += fmt::format("<{}{}", name, written(attributes));
  if (hint.empty() && words.empty()) {
    elements_ += "/>\n";
    return;
  }
  const std::string title = hint.empty() ? "" : fmt::format("<title>{}</title>", escaped(hint));
  elements_ += fmt::format(">{}{}</{}>\n", title, escaped(words), name);
}

void Drawing::rect(const Box& box, const Attributes& attributes, std::string_view hint) {
  Attributes all = {
      {"x", pixels(box.x)}, {"y", pixels(box.y)}, {"width", pixels(box.width)}, {"height", pixels(box.height)}};
  all.insert(all.end(), attributes.begin(), attributes.end());
  element("rect", all, hint);
  extend(box.x + box.width, box.y + box.height);
}

void Drawing::circle(double x, double y, double radius, const Attributes& attributes, std::string_view hint) {
  Attributes all = {{"cx", pixels(x)}, {"cy", pixels(y)}, {"r", pixels(radius)}};
  all.insert(all.end(), attributes.begin(), attributes.end());
  element("circle", all, hint);
  extend(x + radius, y + radius);
}

void Drawing::line(double x1, double y1, double x2, double y2, std::string_view colour, double thickness,
                   std::string_view dashes) {
  Attributes all = {{"x1", pixels(x1)},
                    {"y1", pixels(y1)},
                    {"x2", pixels(x2)},
                    {"y2", pixels(y2)},
                    {"stroke", std::string(colour)},
                    {"stroke-width", pixels(thickness)}};
  if (!dashes.empty()) all.emplace_back("stroke-dasharray", std::string(dashes));
  element("line", all, {});
  extend(std::max(x1, x2), std::max(y1, y2));
}

void Drawing::text(double x, double y, std::string_view words, const TextStyle& style) {
  const bool cut = style.room > 0 && text_width(words, style) > style.room;
  const std::string shown = cut ? fitted(words, style.room, style) : std::string(words);
  Attributes attributes = {
      {"x", pixels(x)}, {"y", pixels(y)}, {"font-size", pixels(style.size)}, {"fill", std::string(style.fill)}};
  if (style.bold) attributes.emplace_back("font-weight", "bold");
  if (style.anchor != "start") attributes.emplace_back("text-anchor", std::string(style.anchor));
  element("text", attributes, cut ? words : "", shown);
  const double width = text_width(shown, style);
  extend(style.anchor == "end" ? x : style.anchor == "middle" ? x + width / 2 : x + width, y + 0.3 * style.size);
}

void Drawing::path(std::string_view commands, const Attributes& attributes, std::string_view hint) {
  if (commands.empty()) return;
  Attributes all = {{"d", std::string(commands)}};
  all.insert(all.end(), attributes.begin(), attributes.end());
  element("path", all, hint);
}

void Drawing::add(const Drawing& other, double x, double y) {
  elements_ += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", pixels(x), pixels(y), other.elements_);
  extend(x + other.width_, y + other.height_);
}

void Drawing::open(const Attributes& attributes) { elements_ += fmt::format("<g{}>\n", written(attributes)); }

void Drawing::close() { elements_ += "</g>\n"; }

void Drawing::hint(std::string_view words) { elements_ += fmt::format("<title>{}</title>\n", escaped(words)); }

void Drawing::extend(double width, double height) {
  width_ = std::max(width_, width);
  height_ = std::max(height_, height);
}

Drawing in_rows(const std::vector<Drawing>& drawings, double width, double gap) {
  Drawing result;
  double x = 0, y = 0, height = 0;
  for (const Drawing& d : drawings) {
    if (x > 0 && x + d.width() > width) {
      y += height + gap;
      x = height = 0;
    }
    result.add(d, x, y);
    x += d.width() + gap;
    height = std::max(height, d.height());
  }
  return result;
}

std::string svg_file(const Drawing& drawing, std::string_view title, double margin) {
  Drawing page;
  page.add(drawing, margin, margin);
  const std::string width = pixels(drawing.width() + 2 * margin), height = pixels(drawing.height() + 2 * margin);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"Arial, Helvetica, 'Liberation Sans', 'DejaVu Sans', sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n{3}</svg>\n",
      width, height, escaped(title), page.elements());
}

std::string inline_svg(const Drawing& drawing, double width, double height, std::string_view label) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
      pixels(width), pixels(height), escaped(label), drawing.elements());
}

}  // namespace orrery
