#pragma once

#include <algorithm>
#include <cmath>

#include "models/base/units.h"

namespace orrery {

// The range of time that is in view, and the mapping from times to horizontal pixels x, from 0 to width.
struct TimeScale {
  Picoseconds begin = 0, end = 1;  // the range of time in view
  double width = 1;                // width of the view in pixels

  double picoseconds_per_pixel() const { return static_cast<double>(end - begin) / width; }
  double x_of(Picoseconds t) const { return static_cast<double>(t - begin) / picoseconds_per_pixel(); }
  Picoseconds time_of(double x) const {
    return begin + static_cast<Picoseconds>(std::llround(x * picoseconds_per_pixel()));
  }
};

inline constexpr Picoseconds kShortestView = 1000;  // shortest range of time in view: 1 ns over the whole width

// Moves the range in view into [0, total] without changing its length; a range longer than `total` becomes [0, total].
TimeScale clamped(TimeScale s, Picoseconds total);
// Multiplies the length of the view by `factor`; the time at pixel x stays at that pixel unless the view would leave
// [0, total].
TimeScale zoomed(const TimeScale& s, double x, double factor, Picoseconds total);
TimeScale panned(const TimeScale& s, double pixels, Picoseconds total);
// Returns a view of [from, to] with a margin around it.
TimeScale focused(const TimeScale& s, Picoseconds from, Picoseconds to, Picoseconds total);

// Returns the time between two marks of the ruler: 1, 2 or 5 times a power of ten, so long that marks are at least
// `pixels` pixels apart.
Picoseconds tick_distance(const TimeScale& s, double pixels);

}  // namespace orrery
