#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "viz/timeline/timeline.h"

namespace orrery {

// Walks over JSON text as profilers write it, broken or not, without building anything. It never reads outside the text
// and every step goes forward, so that no input hangs it. Strings may hold control characters; numbers may be NaN.
// Written by hand: simdjson and nlohmann's parser give up a text that is cut short, and a broken trace is shown as far
// as it goes.
class JsonScan {
 public:
  explicit JsonScan(std::string_view text, std::size_t at = 0)
      : begin_(text.data()), at_(text.data() + at), end_(text.data() + text.size()) {}

  bool done() const { return at_ >= end_; }
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  void move_to(std::size_t position) { at_ = begin_ + position; }
  char peek() {  // the next character that is no blank; '\0' at the end
    while (at_ < end_ && blank(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  bool take(char c) {  // moves past c if it is the next character
    if (peek() != c || done()) return false;
    ++at_;
    return true;
  }
  std::string_view string();  // after '"': the text up to the closing quote, escapes unresolved; moves past both
  std::string_view raw();     // the text of any value; a string without quotes
  void skip();                // moves past any value
  bool complete() const { return complete_; }                     // no value was cut off by the end of the text
  std::uint64_t control_characters() const { return controls_; }  // number of control characters in strings

 private:
  static bool blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  void skip_nested();

  const char* begin_;
  const char* at_;
  const char* end_;
  bool complete_ = true;
  std::uint64_t controls_ = 0;
};

// A decimal number of microseconds as whole microseconds and picoseconds. False if the text is no finite number, or
// beyond 2^53 microseconds.
struct ExactTime {
  std::int64_t microseconds = 0;
  std::int64_t picoseconds = 0;  // 0 to 999,999
};
bool parse_time(std::string_view text, ExactTime& time);

// The meaning of text between quotes: escapes resolved; control characters and invalid UTF-8 replaced.
std::string unescaped(std::string_view text);

// The members of an object, and, where it is not nested itself, of its member "args", as (name, text).
Details members_of_object(std::string_view object, bool nested = false);

}  // namespace orrery
