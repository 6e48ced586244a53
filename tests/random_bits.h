#pragma once

#include <cstdint>

namespace orrery::test {

// Numbers that depend on their counter alone, the same on every machine: splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
inline std::uint64_t random_bits(std::uint64_t counter) {
  std::uint64_t z = counter * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace orrery::test
