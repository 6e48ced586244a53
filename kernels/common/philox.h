#pragma once

#include <array>
#include <cstdint>

namespace orrery::kernels {

using Philox = std::array<std::uint32_t, 4>;

// Computes four random words from a 128-bit counter and a 64-bit key by the generator Philox4x32-10, which keeps no
// state between calls. Multipliers and Weyl constants are those of Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3" (SC 2011).
constexpr Philox philox(Philox counter, std::uint64_t key) {
  auto low = static_cast<std::uint32_t>(key);
  auto high = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ low, static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ high, static_cast<std::uint32_t>(a)};
    low += 0x9E3779B9;
    high += 0xBB67AE85;
  }
  return counter;
}

}  // namespace orrery::kernels
