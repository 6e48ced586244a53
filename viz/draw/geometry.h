#pragma once

#include <algorithm>
#include <cmath>

#include "models/base/units.h"

namespace orrery {

// The part of a timeline that is in view and where its moments lie on a row of pixels, x from 0 to width.
struct TimeScale {
  Picoseconds begin = 0, end = 1;  // in view
  double width = 1;                // pixels

  double picoseconds_per_pixel() const { return static_cast<double>(end - begin) / width; }
  double x_of(Picoseconds t) const { return static_cast<double>(t - begin) / picoseconds_per_pixel(); }
  Picoseconds time_of(double x) const {
    return begin + static_cast<Picoseconds>(std::llround(x * picoseconds_per_pixel()));
  }
};

inline constexpr Picoseconds kShortestView = 1000;  // 1 ns over the whole width

// The same length, moved back into [0, total]; a view longer than that shows it all.
TimeScale clamped(TimeScale s, Picoseconds total);
// `factor` times the length, the moment at x staying where it is as far as clamping lets it.
TimeScale zoomed(const TimeScale& s, double x, double factor, Picoseconds total);
TimeScale panned(const TimeScale& s, double pixels, Picoseconds total);
// [from, to] with some room around it.
TimeScale focused(const TimeScale& s, Picoseconds from, Picoseconds to, Picoseconds total);

// Distance of the ruler's marks: 1, 2 or 5 times a power of ten, at least `pixels` apart.
Picoseconds tick_distance(const TimeScale& s, double pixels);

}  // namespace orrery
