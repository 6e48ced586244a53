#pragma once

#include <cstdint>

namespace orrery {

// The output function of the generator SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number
// generators").
inline std::uint64_t mix_bits(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Returns a number from 0 to below 1 that 64 random bits stand for.
inline double uniform_of(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1p-53; }

// Returns the counter-th of a seed's numbers, which are uniform from 0 to below 1.
inline double uniform(std::uint64_t seed, std::uint64_t counter) {
  return uniform_of(mix_bits((seed + 1) * 0xbf58476d1ce4e5b9ULL + (counter + 1) * 0x9e3779b97f4a7c15ULL));
}

}  // namespace orrery
