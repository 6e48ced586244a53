#pragma once

#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace orrery {

// The memory that a buffer lies in: that of the GPU, that of the host, or the disks of the host.
enum class MemoryTier : std::uint8_t { device, host, nvme };

// A row of the table of memory tiers.
struct MemoryTierRow {
  std::string_view name;     // name in plans and traces
  std::string_view in_spec;  // value of the keys of strategy.offload
  std::string_view about;    // name in messages, as "disks" in "optimizer on the disks"
  bool behind_host = false;  // reached only through the host's memory
};
inline constexpr MemoryTierRow kMemoryTiers[] = {
    {"device", "none", "device"}, {"host", "cpu", "host"}, {"nvme", "nvme", "disks", true}};

inline constexpr std::size_t kTiers = std::size(kMemoryTiers);

constexpr const MemoryTierRow& row_of(MemoryTier tier) { return kMemoryTiers[static_cast<std::size_t>(tier)]; }
// The tier that a word in a spec names; nothing for an unknown word.
constexpr std::optional<MemoryTier> tier_in_spec(std::string_view word) {
  for (std::size_t i = 0; i < kTiers; ++i) {
    if (kMemoryTiers[i].in_spec == word) return static_cast<MemoryTier>(i);
  }
  return std::nullopt;
}
constexpr bool behind_host(MemoryTier tier) { return row_of(tier).behind_host; }

}  // namespace orrery
