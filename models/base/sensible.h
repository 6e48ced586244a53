#pragma once

#include <cstddef>
#include <cstdint>

// The ranges in which a number of an input file can mean anything. Beyond them a file is damaged or a unit mistaken,
// and arithmetic on it may leave the range of its type.
namespace orrery::sensible {

inline constexpr double kMostMicroseconds = 1e12;  // eleven days
inline constexpr double kMostSize = 1e18;          // elements of one dimension, or bytes
inline constexpr double kMostAmount = 1e30;        // flops or bytes of an op
inline constexpr double kMostGBps = 1e9;
inline constexpr double kLeastPart = 1e-3, kMostPart = 10;  // parts of a nominal rate
inline constexpr double kMostSpread = 1e9;
inline constexpr double kMostSlowdown = 1e6;
inline constexpr double kMostDollars = 1e12;
inline constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
// the bytes of so many elements stay a 64-bit number
inline constexpr std::int64_t kMostElements = std::int64_t{1} << 56;
inline constexpr std::int64_t kMostMembers = 10'000'000;  // ranks or nodes of a group
inline constexpr std::int64_t kMostChannels = 4096;       // channels of NCCL
// Characters of a file's word that a message quotes
inline constexpr std::size_t kLongestWord = 40;

}  // namespace orrery::sensible
