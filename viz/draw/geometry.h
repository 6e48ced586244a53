#pragma once

#include <algorithm>
#include <cmath>

#include "models/base/units.h"

namespace orrery {

// The part of a timeline that is in view, and the mapping from times to pixels of a row, x from 0 to width.
struct TimeScale {
  Picoseconds begin = 0, end = 1;  // the time in view
  double width = 1;                // pixels

  double picoseconds_per_pixel() const { return static_cast<double>(end - begin) / width; }
  double x_of(Picoseconds t) const { return static_cast<double>(t - begin) / picoseconds_per_pixel(); }
  Picoseconds time_of(double x) const {
    return begin + static_cast<Picoseconds>(std::llround(x * picoseconds_per_pixel()));
  }
};

inline constexpr Picoseconds kShortestView = 1000;  // 1 ns over the whole width

// The view moved back into [0, total] with the same length; a view longer than that shows all of it.
TimeScale clamped(TimeScale s, Picoseconds total);
// The view with `factor` times the length; the time at x stays at x as far as clamping lets it.
TimeScale zoomed(const TimeScale& s, double x, double factor, Picoseconds total);
TimeScale panned(const TimeScale& s, double pixels, Picoseconds total);
// A view of [from, to] with some room around it.
TimeScale focused(const TimeScale& s, Picoseconds from, Picoseconds to, Picoseconds total);

// Distance of the ruler's marks: 1, 2 or 5 times a power of ten, at least `pixels` apart.
Picoseconds tick_distance(const TimeScale& s, double pixels);

}  // namespace orrery
