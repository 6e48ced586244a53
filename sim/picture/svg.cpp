#include "sim/picture/svg.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>

namespace orrery {
namespace {

constexpr std::string_view kEllipsis = "\u2026";

// Returns the number of bytes of the UTF-8 character at the beginning of a text; 0 if the bytes are not UTF-8, or are
// a character that XML 1.0 does not allow.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return lead >= 0x20 && lead != 0x7f ? 1 : 0;
  const std::size_t count = lead >= 0xf0 && lead < 0xf5 ? 4 : lead >= 0xe0 && lead < 0xf0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (count == 0 || lead >= 0xf5 || text.size() < count) return 0;
  std::uint32_t code = lead & (0xffU >> (count + 1));
  for (std::size_t i = 1; i < count; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool overlong = (count == 3 && code < 0x800) || (count == 4 && (code < 0x10000 || code > 0x10ffff));
  const bool forbidden = (code >= 0xd800 && code < 0xe000) || code == 0xfffe || code == 0xffff || code < 0xa0;
  return overlong || forbidden ? 0 : count;
}

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

template <class F>
void for_characters(std::string_view text, const F& f) {
  while (!text.empty()) {
    const std::size_t count = character_bytes(text);
    f(count == 0 ? std::string_view("?") : text.substr(0, count));
    text.remove_prefix(std::max<std::size_t>(1, count));
  }
}

std::string written(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) text += fmt::format(" {}=\"{}\"", name, xml_text(value));
  return text;
}

// Returns the colour with a hue in degrees, at the saturation and lightness in percent, in whole numbers.
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

std::string xml_text(std::string_view text) {
  std::string result;
  for_characters(text, [&](std::string_view c) {
    result += c == "&" ? "&amp;" : c == "<" ? "&lt;" : c == ">" ? "&gt;" : c == "\"" ? "&quot;" : c;
  });
  return result;
}

double text_width(std::string_view text, const TextStyle& style) {
  double width = 0;
  for_characters(text, [&](std::string_view c) { width += character_width(c); });
  return width * style.size * (style.bold ? 1.12 : 1);
}

std::string fitted(std::string_view text, double width, const TextStyle& style) {
  if (text_width(text, style) <= width) return std::string(text);
  std::string result;
  double left = width - text_width(kEllipsis, style);
  bool full = false;
  for_characters(text, [&](std::string_view c) {
    left -= text_width(c, style);
    full = full || left < 0;
    if (!full) result += c;
  });
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

void Drawing::rect(const Box& box, const Attributes& attributes) {
  elements_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}/>\n", pixels(box.x), pixels(box.y),
                           pixels(box.width), pixels(box.height), written(attributes));
  extend(box.x + box.width, box.y + box.height);
}

void Drawing::text(double x, double y, std::string_view words, const TextStyle& style) {
  Attributes attributes = {{"font-size", pixels(style.size)}, {"fill", std::string(style.fill)}};
  if (style.bold) attributes.emplace_back("font-weight", "bold");
  if (style.anchor != "start") attributes.emplace_back("text-anchor", std::string(style.anchor));
  elements_ +=
      fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", pixels(x), pixels(y), written(attributes), xml_text(words));
  const double width = text_width(words, style);
  extend(style.anchor == "end" ? x : style.anchor == "middle" ? x + width / 2 : x + width, y + 0.3 * style.size);
}

void Drawing::path(std::string_view commands, const Attributes& attributes) {
  elements_ += fmt::format("<path d=\"{}\"{}/>\n", commands, written(attributes));
}

void Drawing::add(const Drawing& other, double x, double y) {
  elements_ += fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", pixels(x), pixels(y), other.elements_);
  extend(x + other.width_, y + other.height_);
}

void Drawing::open(const Attributes& attributes) { elements_ += fmt::format("<g{}>\n", written(attributes)); }

void Drawing::close() { elements_ += "</g>\n"; }

void Drawing::hint(std::string_view words) { elements_ += fmt::format("<title>{}</title>\n", xml_text(words)); }

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
      width, height, xml_text(title), page.elements());
}

}  // namespace orrery
