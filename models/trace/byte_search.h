#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

// Searches for the bytes that end strings and numbers of JSON text, eight or sixteen bytes at a time. The functions are
// inline because JsonScan searches about twenty times an event, mostly over fewer than sixteen bytes.
namespace orrery::byte_search {

#ifdef __SSE2__

// Advances to the first byte that is in `wanted` or, with `controls`, below 0x20; fewer than sixteen bytes before the
// end are left to the caller.
template <bool controls, std::size_t size>
const char* to_first_of(const char* at, const char* end, const char (&wanted)[size]) {
  const __m128i last_control = _mm_set1_epi8(0x1f);
  for (; end - at >= 16; at += 16) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    __m128i found = controls ? _mm_cmpeq_epi8(_mm_min_epu8(text, last_control), text) : _mm_setzero_si128();
    for (std::size_t i = 0; i + 1 < size; ++i)
      found = _mm_or_si128(found, _mm_cmpeq_epi8(text, _mm_set1_epi8(wanted[i])));
    if (const auto mask = static_cast<unsigned>(_mm_movemask_epi8(found)); mask != 0)
      return at + std::countr_zero(mask);
  }
  return at;
}

// Advances to the first byte that is not blank; up to fifteen blanks before the end are left to the caller.
inline const char* past_blanks(const char* at, const char* end) {
  for (; end - at >= 16; at += 16) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    __m128i blank = _mm_cmpeq_epi8(text, _mm_set1_epi8(' '));
    for (const char c : {'\n', '\t', '\r'}) blank = _mm_or_si128(blank, _mm_cmpeq_epi8(text, _mm_set1_epi8(c)));
    if (const unsigned other = ~static_cast<unsigned>(_mm_movemask_epi8(blank)) & 0xffffU; other != 0)
      return at + std::countr_zero(other);
  }
  return at;
}

#else

inline const char* past_blanks(const char* at, const char*) { return at; }

// Returns v with a high bit set in every byte that is zero, exact up to the first such byte (Mycroft's trick; Warren,
// Hacker's Delight, 6-1).
inline std::uint64_t zero_bytes(std::uint64_t v) { return (v - 0x0101010101010101ULL) & ~v & 0x8080808080808080ULL; }

// Advances to the first byte that is in `wanted` or, with `controls`, below 0x20; fewer than eight bytes before the end
// are left to the caller. On a big-endian machine it stops up to seven bytes before the byte.
template <bool controls, std::size_t size>
const char* to_first_of(const char* at, const char* end, const char (&wanted)[size]) {
  constexpr std::uint64_t ones = 0x0101010101010101ULL;
  std::uint64_t v = 0;
  for (; end - at >= 8; at += 8) {
    std::memcpy(&v, at, 8);
    std::uint64_t found = controls ? zero_bytes(v & (ones * 0xe0)) : 0;
    for (std::size_t i = 0; i + 1 < size; ++i) found |= zero_bytes(v ^ (ones * static_cast<unsigned char>(wanted[i])));
    if (found != 0) return std::endian::native == std::endian::little ? at + std::countr_zero(found) / 8 : at;
  }
  return at;
}

#endif

// These functions advance to the first byte that may end the string or the value, or to the last few bytes of the text.
// A string ends at a quote; a backslash and a control character must be looked at. A number or a word ends at a comma,
// a bracket or a blank. to_value_end() stops at control characters that are no blanks too, since it compares fewer
// bytes than to_word_end(), which passes over them.
inline const char* to_string_end(const char* at, const char* end) { return to_first_of<true>(at, end, "\"\\"); }
inline const char* to_value_end(const char* at, const char* end) { return to_first_of<true>(at, end, ",}] "); }
inline const char* to_word_end(const char* at, const char* end) { return to_first_of<false>(at, end, ",}] \n\t\r"); }
inline const char* to_bracket_or_string(const char* at, const char* end) {
  return to_first_of<false>(at, end, "\"{}[]");
}

}  // namespace orrery::byte_search
