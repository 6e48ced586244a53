#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

#include "models/base/units.h"

namespace orrery {

// The memory that a buffer lies in: that of the GPU, that of the host, or the disks of the host.
enum class MemoryTier : std::uint8_t { device, host, nvme };

// A row of the table of memory tiers (GPU, host, disks). For a tier that is reached through the host's memory, such as
// disks, the spec (input file) has a section cluster.<name> with the tier's capacity and bandwidths on one node
// (models/load/cluster.cpp).
struct MemoryTierRow {
  std::string_view name;     // name in plans, traces and reports ("nvme_peak_bytes"), and as a key of the cluster
  std::string_view in_spec;  // the value that names this tier in the spec's keys under strategy.offload
  std::string_view about;    // name in error messages: "optimizer on the disks"
  std::string_view label;    // name in tables of memory
  bool behind_host = false;  // whether data reach this tier only through the host's memory
};
inline constexpr MemoryTierRow kMemoryTiers[] = {{"device", "none", "device", "device memory"},
                                                 {"host", "cpu", "host", "host memory"},
                                                 {"nvme", "nvme", "disks", "disks", true}};

inline constexpr std::size_t kTiers = std::size(kMemoryTiers);

// Numbers of bytes, one for each memory tier.
using TierBytes = std::array<Bytes, kTiers>;

constexpr std::size_t index_of(MemoryTier tier) { return static_cast<std::size_t>(tier); }
constexpr const MemoryTierRow& row_of(MemoryTier tier) { return kMemoryTiers[index_of(tier)]; }
// The tier that a word in a spec names; nothing for an unknown word.
constexpr std::optional<MemoryTier> tier_in_spec(std::string_view word) {
  for (std::size_t i = 0; i < kTiers; ++i) {
    if (kMemoryTiers[i].in_spec == word) return static_cast<MemoryTier>(i);
  }
  return std::nullopt;
}
constexpr bool behind_host(MemoryTier tier) { return row_of(tier).behind_host; }

// The spec's words for all memory tiers, joined to the list of permitted values that error messages and help show:
// "none | cpu | nvme".
namespace detail {
inline constexpr std::string_view kBetween = " | ";
inline constexpr auto kTierWordsText = [] {
  constexpr std::size_t length = [] {
    std::size_t sum = 0;
    for (const MemoryTierRow& row : kMemoryTiers) sum += row.in_spec.size() + kBetween.size();
    return sum - kBetween.size();
  }();
  std::array<char, length> text{};
  auto at = text.begin();
  for (std::size_t i = 0; i < kTiers; ++i) {
    if (i > 0) at = std::ranges::copy(kBetween, at).out;
    at = std::ranges::copy(kMemoryTiers[i].in_spec, at).out;
  }
  return text;
}();
}  // namespace detail
inline constexpr std::string_view kTierWords(detail::kTierWordsText.data(), detail::kTierWordsText.size());

// The memory tiers other than the device's own memory, the nearest first.
inline constexpr auto kTiersBeyond = [] {
  std::array<MemoryTier, kTiers - 1> tiers{};
  for (std::size_t i = 1; i < kTiers; ++i) tiers[i - 1] = static_cast<MemoryTier>(i);
  return tiers;
}();
// kTiersBehindHost is the number of memory tiers that data reach only through the host's memory (behind_host).
// index_behind_host() returns a tier's index among these tiers.
inline constexpr std::size_t kTiersBehindHost = std::ranges::count_if(kMemoryTiers, &MemoryTierRow::behind_host);
constexpr std::size_t index_behind_host(MemoryTier tier) {
  return std::count_if(std::begin(kMemoryTiers), std::begin(kMemoryTiers) + index_of(tier),
                       [](const MemoryTierRow& row) { return row.behind_host; });
}

}  // namespace orrery
