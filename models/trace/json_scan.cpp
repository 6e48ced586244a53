#include "models/trace/json_scan.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace orrery {
namespace {

bool digit(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, std::uint32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xc0 | (code >> 6));
    out += static_cast<char>(0x80 | (code & 0x3f));
  } else {
    out += static_cast<char>(0xe0 | (code >> 12));
    out += static_cast<char>(0x80 | ((code >> 6) & 0x3f));
    out += static_cast<char>(0x80 | (code & 0x3f));
  }
}

// Decodes a \uXXXX escape; text[i] is the u. Returns 0xfffd for invalid digits and for surrogate halves.
std::uint32_t code_point(std::string_view text, std::size_t i) {
  std::uint32_t code = 0;
  for (std::size_t k = i; k < i + 4; ++k) {
    const char c = k < text.size() ? text[k] : 'x';
    const bool letter = (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    if (!digit(c) && !letter) return 0xfffd;
    code = code * 16 + static_cast<std::uint32_t>(digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return code < 0x20 || (code >= 0xd800 && code < 0xe000) ? 0xfffd : code;
}

// Returns the length of the valid UTF-8 sequence of more than one byte that begins at text[i]; 0 if none does.
std::size_t utf8_length(std::string_view text, std::size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  const std::size_t length = byte >= 0xc2 && byte < 0xe0 ? 2 : byte >= 0xe0 && byte < 0xf0 ? 3 : byte < 0xf5 ? 4 : 0;
  if (byte < 0xc2 || length == 0 || i + length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k) {
    if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::string_view JsonScan::rest_of_string(const char* from) {
  while (true) {
    while (at_ < end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
    if (at_ >= end_) break;
    if (*at_ == '"') return {from, static_cast<std::size_t>(at_++ - from)};
    if (*at_ == '\\') {
      at_ += end_ - at_ >= 2 ? 2 : 1;
    } else {
      ++controls_;
      ++at_;
    }
    at_ = byte_search::to_string_end(at_, end_);
  }
  complete_ = false;
  at_ = end_;
  return {from, static_cast<std::size_t>(end_ - from)};
}

void JsonScan::skip_text(std::size_t depth) {
  while (true) {
    if (depth > 0) at_ = byte_search::to_bracket_or_string(at_, end_);
    if (at_ >= end_) break;
    const char c = *at_;
    if (c == '"') {
      string();
      if (depth == 0) return;
      continue;
    }
    ++at_;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return;
  }
  complete_ = false;
}

void JsonScan::skip_word() {
  at_ = byte_search::to_word_end(at_, end_);
  while (at_ < end_ && !ends_value(*at_)) ++at_;
  if (at_ >= end_) complete_ = false;
}

bool parse_time(std::string_view text, ExactTime& time) {
  std::size_t i = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (negative) ++i;
  const std::size_t first = i;
  std::int64_t whole = 0;
  for (; i < text.size() && digit(text[i]); ++i) {
    if (whole >= 900'000'000'000'000) return false;  // too large: ten times the number must stay below 2^53
    whole = whole * 10 + (text[i] - '0');
  }
  if (i == first) return false;
  std::int64_t fraction = 0, unit = 1'000'000;
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && digit(text[i]); ++i) {
      if (unit == 1) continue;
      unit /= 10;
      fraction += unit * (text[i] - '0');
    }
  }
  if (i < text.size()) {  // either an exponent follows, or the text is not a number
    const std::string copy(text);
    char* end = nullptr;
    const double value = std::strtod(copy.c_str(), &end);
    if (end != copy.c_str() + copy.size() || !std::isfinite(value) || std::abs(value) > 9e15) return false;
    whole = static_cast<std::int64_t>(std::floor(std::abs(value)));
    fraction = static_cast<std::int64_t>((std::abs(value) - static_cast<double>(whole)) * 1e6);
  }
  time = {whole, fraction};
  if (negative) time = fraction == 0 ? ExactTime{-whole, 0} : ExactTime{-whole - 1, 1'000'000 - fraction};
  return true;
}

std::string unescaped(std::string_view text) {
  static constexpr std::string_view kReplacement = "\xef\xbf\xbd";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\\' && i + 1 < text.size()) {
      const char next = text[++i];
      if (next == 'u') {
        append_utf8(out, code_point(text, i + 1));
        i = std::min(i + 4, text.size() - 1);
      } else if (next == 'n' || next == 't' || next == 'r' || next == 'b' || next == 'f') {
        out += ' ';
      } else {
        out += static_cast<unsigned char>(next) < 0x20 ? ' ' : next;
      }
    } else if (c < 0x20) {
      out += ' ';
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else if (const std::size_t length = utf8_length(text, i); length != 0) {
      out += text.substr(i, length);
      i += length - 1;
    } else {
      out += kReplacement;
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> members_of_object(std::string_view object, bool nested) {
  std::vector<std::pair<std::string, std::string>> members;
  JsonScan scan(object);
  if (!scan.take('{')) return members;
  while (scan.peek() == '"') {
    const std::string key = unescaped(scan.string());
    if (!scan.take(':')) break;
    if (key == "args" && !nested && scan.peek() == '{') {
      const auto arguments = members_of_object(scan.raw(), true);
      members.insert(members.end(), arguments.begin(), arguments.end());
    } else {
      const std::string_view value = scan.raw();
      members.emplace_back(key, unescaped(value));
    }
    if (!scan.take(',')) break;
  }
  return members;
}

}  // namespace orrery
