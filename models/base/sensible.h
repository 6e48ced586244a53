#pragma once

#include <cstddef>
#include <cstdint>

// The plausible ranges of numbers in input files. A number beyond them means that the file is damaged or a unit
// mistaken, and arithmetic on it could overflow.
namespace orrery::sensible {

inline constexpr double kMostMicroseconds = 1e12;  // eleven days
inline constexpr double kMostSize = 1e18;          // elements of one dimension, or bytes
inline constexpr double kMostAmount = 1e30;        // flops or bytes of an op
inline constexpr double kMostGBps = 1e9;
inline constexpr double kLeastPart = 1e-3, kMostPart = 10;  // fractions of a nominal rate
inline constexpr double kMostSpread = 1e9;
inline constexpr double kMostSlowdown = 1e6;
inline constexpr double kMostDollars = 1e12;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
// The bytes of so many elements still fit in 64 bits
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
inline constexpr std::int64_t kMostMembers = 10'000'000;  // ranks or nodes of a group
inline constexpr std::int64_t kMostChannels = 4096;       // channels of NCCL
// Characters of a word in an input file that an error message quotes at most
inline constexpr std::size_t kLongestWord = 40;

}  // namespace orrery::sensible
