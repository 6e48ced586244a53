#pragma once

#include <cstddef>
#include <cstdint>

// The plausible ranges of numbers in input files. A number outside its range means that the file is damaged or that a
// unit is mistaken, and arithmetic on it could overflow.
namespace orrery::sensible {

inline constexpr double kMostMicroseconds = 1e12;  // eleven days
inline constexpr double kMostSize = 1e18;          // most elements in one dimension of a tensor, or most bytes
inline constexpr double kMostAmount = 1e30;        // most FLOPs or bytes of an op
inline constexpr double kMostGBps = 1e9;
inline constexpr double kLeastPart = 1e-3, kMostPart = 10;  // least and most of a fraction of a nominal rate
inline constexpr double kMostSpread = 1e9;
inline constexpr double kMostSlowdown = 1e6;
inline constexpr double kMostDollars = 1e12;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
// Most elements of a tensor: the number of their bytes still fits in 64 bits
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
inline constexpr std::int64_t kMostMembers = 10'000'000;  // most ranks or nodes of a group
inline constexpr std::int64_t kMostChannels = 4096;       // most NCCL channels
// Most characters of a word from an input file that an error message quotes
inline constexpr std::size_t kLongestWord = 40;

}  // namespace orrery::sensible
