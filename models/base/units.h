#pragma once

#include <cstdint>

#include "models/base/error.h"

namespace orrery {

using Bytes = std::int64_t;
using Seconds = double;
// Time of the simulated clock in integer picoseconds, so that sums are exact and any two times compare exactly
using Picoseconds = std::int64_t;

inline constexpr double kPicosecondsPerSecond = 1e12;
inline constexpr Seconds kMicrosecond = 1e-6;
inline constexpr double kGiB = 1073741824.0;  // bytes

// The longest duration that picoseconds() converts, one day in seconds. For a longer duration picoseconds() throws
// Error, because a kernel, transfer or launch of more than a day comes from an absurd number in the input, and a
// training step of many such operations would overflow the clock.
inline constexpr Seconds kLongest = 86400;
inline Picoseconds picoseconds(Seconds s) {
  if (!(s >= 0 && s <= kLongest))
    throw Error("spec: an operation would take more than a day; check its rates and times");
  return static_cast<Picoseconds>(s * kPicosecondsPerSecond + 0.5);
}
inline Seconds seconds(Picoseconds t) { return static_cast<Seconds>(t) / kPicosecondsPerSecond; }

inline constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace orrery
