#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

namespace orrery {

// Removes the next line from the front of a text and stores it, without its line end, in `line`; returns false if
// nothing is left.
inline bool next_line(std::string_view& text, std::string_view& line) {
  if (text.empty()) return false;
  const std::size_t end = text.find('\n');
  line = text.substr(0, end);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Reads a line from left to right in one pass, however long the line is. A function that does not find what it is asked
// for leaves the position unchanged, with one exception: the digits of a number that is out of range are skipped, and
// no number is returned.
class LineScanner {
 public:
  explicit LineScanner(std::string_view line) : rest_(line) {}

  std::string_view rest() const { return rest_; }
  bool done() const { return rest_.empty(); }

  bool skip(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  // Moves to the end of the next occurrence of `text`; returns false where there is none.
  bool skip_past(std::string_view text) {
    const std::size_t at = rest_.find(text);
    if (at == std::string_view::npos) return false;
    rest_.remove_prefix(at + text.size());
    return true;
  }
  // Reads characters, maybe none, for as long as is(c) holds.
  template <class Is>
  std::string_view take_while(Is is) {
    std::size_t n = 0;
    while (n < rest_.size() && is(rest_[n])) ++n;
    const std::string_view taken = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return taken;
  }
  bool spaces() { return !take_while(is_space).empty(); }
  std::string_view word() {
    return take_while([](char c) { return !is_space(c); });
  }
  // Reads a whole number; nullopt if there is none, or if it is greater than `most`.
  std::optional<std::int64_t> whole(std::int64_t most) {
    const std::string_view digits = take_while(is_digit);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || value > most) return std::nullopt;
    return value;
  }
  // Reads a decimal number; nullopt if there is none, or if it is not finite or greater than `most`.
  std::optional<double> number(double most) {
    const std::string_view digits = take_while([](char c) { return is_digit(c) || c == '.'; });
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    return std::isfinite(value) && value <= most ? std::optional(value) : std::nullopt;
  }

 private:
  std::string_view rest_;
};

}  // namespace orrery
