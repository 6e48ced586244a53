#include "models/base/names.h"

#include <algorithm>

#include <fmt/ranges.h>

namespace orrery {
namespace {

// Words longer than this are not compared with known names: they are no misspelt names, and edit_distance() takes time
// and memory in the product of both lengths
constexpr std::size_t kLongestWord = 64;
// greatest number of known names that an error message lists if one of them is close to the unknown name
constexpr std::size_t kMostListed = 40;

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.size() > kLongestWord) return "";
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (std::string_view name : known) {
    const std::size_t distance = edit_distance(word, name);
    if (distance < best_distance && distance < name.size()) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string unknown_name(std::string_view what, std::string_view word, std::span<const std::string_view> known) {
  const std::string_view near = nearest(word, known);
  const std::string hint = near.empty() ? "" : fmt::format(" did you mean {}?", near);
  const bool listed = near.empty() || known.size() <= kMostListed;
  return printable(fmt::format("unknown {} {};{}{}", what, word.substr(0, kLongestWord), hint,
                               listed ? fmt::format(" known: {}", fmt::join(known, ", ")) : ""));
}

// Whether a control character begins at byte i: C0, DEL, or in UTF-8 the first byte of a C1 control.
static bool is_control(std::string_view text, std::size_t i) {
  const auto c = static_cast<unsigned char>(text[i]);
  const bool c1 = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
  return c < 32 || c == 127 || c1;
}

// Number of characters of the escape sequence at byte i if it sets a colour; 0 otherwise.
static std::size_t colour_at(std::string_view text, std::size_t i) {
  if (text.substr(i, 2) != "\x1b[") return 0;
  const std::size_t end = text.find_first_not_of("0123456789;", i + 2);
  return end < text.size() && text[end] == 'm' ? end + 1 - i : 0;
}

// Number of bytes of the UTF-8 character at byte i; 0 if none begins there (RFC 3629, section 4).
static std::size_t utf8_at(std::string_view text, std::size_t i) {
  const auto first = static_cast<unsigned char>(text[i]);
  const std::size_t length = first < 0x80                    ? 1
                             : first >= 0xC2 && first < 0xE0 ? 2
                             : first >= 0xE0 && first < 0xF0 ? 3
                             : first >= 0xF0 && first < 0xF5 ? 4
                                                             : 0;
  const auto second = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
  const bool overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
  const bool beyond = (first == 0xED && second >= 0xA0) || (first == 0xF4 && second >= 0x90);
  if (overlong || beyond) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if (i + k >= text.size() || (static_cast<unsigned char>(text[i + k]) & 0xC0U) != 0x80) return 0;
  }
  return length;
}

bool is_printable(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); i += utf8_at(text, i)) {
    if (utf8_at(text, i) == 0) return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(text, i)) return false;
  }
  return true;
}

std::string_view first_characters(std::string_view text, std::size_t most_bytes) {
  if (text.size() <= most_bytes) return text;
  std::size_t end = most_bytes;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80) --end;
  return text.substr(0, end);
}

std::string printable(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_control(text, i)) text[i] = '?';
  }
  return text;
}

std::string printable_lines(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t colour = colour_at(text, i);
    if (colour > 0)
      i += colour - 1;
    else if (text[i] != '\n' && is_control(text, i))
      text[i] = '?';
  }
  return text;
}

}  // namespace orrery
