#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/trace/byte_search.h"

namespace orrery {

// Goes through JSON text as profilers write it, without building a tree. It never reads outside the text, and every
// step advances, so that no input, however broken, makes it hang. Strings may hold control characters; numbers may be
// NaN. It is written by hand because simdjson and nlohmann's parser reject a text that is cut short, while the viewer
// shows the part before the cut, and `trace summarize` reads a file piece by piece.
class JsonScan {
 public:
  explicit JsonScan(std::string_view text, std::size_t at = 0)
      : begin_(text.data()), at_(text.data() + at), end_(text.data() + text.size()) {}

  bool done() const { return at_ >= end_; }
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  void move_to(std::size_t position) { at_ = begin_ + position; }
  char peek() {                                        // returns the next character that is not blank; '\0' at the end
    if (at_ < end_ && (*at_ == '\n' || *at_ == '\r'))  // lines begin with many blanks
      at_ = byte_search::past_blanks(at_, end_);
    while (at_ < end_ && blank(*at_)) ++at_;
    return at_ < end_ ? *at_ : '\0';
  }
  bool take(char c) {  // skips c if it is the next character
    if (peek() != c || done()) return false;
    ++at_;
    return true;
  }
  std::string_view string() {  // after '"': returns and skips the text and the closing quote; escapes are kept
    const char* const from = ++at_;
    at_ = byte_search::to_string_end(at_, end_);
    if (at_ < end_ && *at_ == '"') return {from, static_cast<std::size_t>(at_++ - from)};
    return rest_of_string(from);
  }
  std::string_view raw() {  // returns and skips the text of any value; of a string, without quotes
    if (peek() == '"') return string();
    const char* const from = at_;
    skip();
    return {from, static_cast<std::size_t>(at_ - from)};
  }
  void skip() {  // skips any value
    const char c = peek();
    if (c == '"' || c == '{' || c == '[') return skip_text(0);
    at_ = byte_search::to_value_end(at_, end_);
    if (done() || !ends_value(*at_)) skip_word();
  }
  void skip_rest() { skip_text(1); }  // within an object or a list: skips what is left of it, and its closing bracket
  // Returns whether all values were complete: none was cut off by the end of the text.
  bool complete() const { return complete_; }
  std::uint64_t control_characters() const { return controls_; }  // number of control characters in strings

 private:
  static bool blank(char c) { return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r'); }
  static bool ends_value(char c) { return c == ',' || c == '}' || c == ']' || blank(c); }
  std::string_view rest_of_string(const char* from);
  void skip_text(std::size_t depth);  // skips a string, an object or a list; depth: number of brackets that are open
  void skip_word();                   // goes on to the end of a number or a word

  const char* begin_;
  const char* at_;
  const char* end_;
  bool complete_ = true;
  std::uint64_t controls_ = 0;
};

// A decimal number of microseconds, split into whole microseconds and picoseconds. parse_time() returns false if the
// text is not a finite number, or exceeds 2^53 microseconds.
struct ExactTime {
  std::int64_t microseconds = 0;
  std::int64_t picoseconds = 0;  // number of picoseconds beyond `microseconds`, between 0 and 999,999
};
bool parse_time(std::string_view text, ExactTime& time);

// Converts the text between quotes: resolves escapes, replaces control characters and invalid UTF-8.
std::string unescaped(std::string_view text);

// Returns the members of a JSON object, and those of its member "args" unless `nested`, as pairs (name, text).
std::vector<std::pair<std::string, std::string>> members_of_object(std::string_view object, bool nested = false);

}  // namespace orrery
