#pragma once

#include <cstdint>

namespace orrery {

using Bytes = std::int64_t;
using Seconds = double;
using Picoseconds = std::int64_t;  // the engine's clock: whole picoseconds, so sums are exact and order is total

inline constexpr double kPicosecondsPerSecond = 1e12;

// The one place where a duration is rounded.
inline Picoseconds picoseconds(Seconds s) { return static_cast<Picoseconds>(s * kPicosecondsPerSecond + 0.5); }
inline Seconds seconds(Picoseconds t) { return static_cast<Seconds>(t) / kPicosecondsPerSecond; }

inline constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace orrery
