#include "sim/summary/names.h"

#include <cstring>

namespace orrery {

// A hash that mixes eight bytes at a time, because names of kernels are up to two thousand bytes long.
std::size_t Names::Hash::operator()(std::string_view text) const {
  std::uint64_t h = text.size() * 0x9e3779b97f4a7c15ULL;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    h = (h ^ word) * 0xff51afd7ed558ccdULL;
    h ^= h >> 32;
  }
  for (; i < text.size(); ++i) h = (h ^ static_cast<unsigned char>(text[i])) * 0x100000001b3ULL;
  return h ^ (h >> 29);
}

std::optional<std::uint32_t> Names::find(std::string_view text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::uint32_t Names::number_of(std::string_view text) {
  const auto found = numbers_.find(text);
  if (found != numbers_.end()) return found->second;
  const auto number = static_cast<std::uint32_t>(texts_.size());
  texts_.emplace_back(text);
  numbers_.emplace(texts_.back(), number);
  return number;
}

}  // namespace orrery
