#pragma once

#include <cstddef>
#include <cstdint>

// The plausible ranges of numbers in input files. A number outside its range means that the file is damaged or that a
// unit is mistaken, and arithmetic on it could overflow.
namespace orrery::sensible {

inline constexpr double kMostMicroseconds = 1e12;  // greatest time in microseconds: eleven days
inline constexpr double kMostSize = 1e18;    // greatest number of elements in one dimension of a tensor, or of bytes
inline constexpr double kMostAmount = 1e30;  // greatest number of FLOPs or bytes of an op
inline constexpr double kMostGBps = 1e9;
inline constexpr double kLeastPart = 1e-3, kMostPart = 10;  // smallest and greatest fraction of a nominal rate
inline constexpr double kMostSpread = 1e9;
inline constexpr double kMostSlowdown = 1e6;
inline constexpr double kMostDollars = 1e12;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
// Greatest number of elements of a tensor: the number of bytes of such a tensor still fits in 64 bits
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
inline constexpr std::int64_t kMostMembers = 10'000'000;  // greatest number of ranks or nodes in a group
inline constexpr std::int64_t kMostChannels = 4096;  // greatest number of NCCL channels that an input file may state
// Greatest number of characters of a word from an input file that an error message quotes
inline constexpr std::size_t kLongestWord = 40;

}  // namespace orrery::sensible
