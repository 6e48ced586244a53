#include "sim/print/xml.h"

#include <cstdint>

namespace orrery {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD in UTF-8

// A decoded character, and the number of bytes that it takes in the text. `valid` is false for a byte that belongs to
// no UTF-8 character; then `bytes` is 1.
struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 1;
  bool valid = false;
};

// Decodes the first character of a text (UTF-8, RFC 3629): overlong forms, surrogates and codes above U+10FFFF are
// refused.
Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const std::size_t bytes = lead >= 0xf0 && lead < 0xf8   ? 4
                            : lead >= 0xe0 && lead < 0xf0 ? 3
                            : lead >= 0xc0 && lead < 0xe0 ? 2
                                                          : 0;
  if (bytes == 0 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0U) != 0x80) return {};
    code = code << 6U | (next & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes, true};
}

// Whether XML 1.0 (production Char) and HTML allow the character in a text.
bool is_allowed(std::uint32_t code) {
  if (code == '\t' || code == '\n') return true;
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  return (code & 0xfffeU) != 0xfffe && (code < 0xfdd0 || code > 0xfdef);
}

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return "";
  }
}

}  // namespace

std::string_view next_character(std::string_view& text) {
  const Character c = first_character(text);
  const std::string_view shown = c.valid && is_allowed(c.code) ? text.substr(0, c.bytes) : kReplacement;
  text.remove_prefix(c.bytes);
  return shown;
}

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view c = next_character(text), entity = c.size() == 1 ? entity_of(c[0]) : "";
    result += entity.empty() ? c : entity;
  }
  return result;
}

}  // namespace orrery
