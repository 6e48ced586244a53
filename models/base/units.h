#pragma once

#include <cstdint>

#include "models/base/error.h"

namespace orrery {

using Bytes = std::int64_t;
using Seconds = double;
using Picoseconds = std::int64_t;  // the engine's clock: whole picoseconds, so sums are exact and order is total

inline constexpr double kPicosecondsPerSecond = 1e12;
inline constexpr Seconds kMicrosecond = 1e-6;

// The one place where a duration is rounded. A single kernel, transfer or launch of more than a day is an absurd figure
// in the input, and a step of many would not fit the clock: throws Error.
inline constexpr Seconds kLongest = 86400;
inline Picoseconds picoseconds(Seconds s) {
  if (!(s >= 0 && s <= kLongest))
    throw Error("spec: an operation would take more than a day; check its rates and times");
  return static_cast<Picoseconds>(s * kPicosecondsPerSecond + 0.5);
}
inline Seconds seconds(Picoseconds t) { return static_cast<Seconds>(t) / kPicosecondsPerSecond; }

inline constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace orrery
