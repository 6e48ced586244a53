#include "viz/draw/geometry.h"

namespace orrery {

TimeScale clamped(TimeScale s, Picoseconds total) {
  total = std::max(total, kShortestView);
  const Picoseconds length = std::clamp(s.end - s.begin, kShortestView, total);
  s.begin = std::clamp<Picoseconds>(s.begin, 0, total - length);
  s.end = s.begin + length;
  return s;
}

TimeScale zoomed(const TimeScale& s, double x, double factor, Picoseconds total) {
  const double wanted = static_cast<double>(s.end - s.begin) * factor;
  const double length =
      std::clamp(wanted, static_cast<double>(kShortestView), static_cast<double>(std::max(total, kShortestView)));
  TimeScale result = s;
  result.begin = s.time_of(x) - static_cast<Picoseconds>(std::llround(length * x / s.width));
  result.end = result.begin + static_cast<Picoseconds>(std::llround(length));
  return clamped(result, total);
}

TimeScale panned(const TimeScale& s, double pixels, Picoseconds total) {
  const auto by = static_cast<Picoseconds>(std::llround(pixels * s.picoseconds_per_pixel()));
  TimeScale result = s;
  result.begin += by;
  result.end += by;
  return clamped(result, total);
}

TimeScale focused(const TimeScale& s, Picoseconds from, Picoseconds to, Picoseconds total) {
  const Picoseconds room = std::max<Picoseconds>((to - from) / 8, kShortestView / 4);
  TimeScale result = s;
  result.begin = from - room;
  result.end = to + room;
  return clamped(result, total);
}

Picoseconds tick_distance(const TimeScale& s, double pixels) {
  const double least = pixels * s.picoseconds_per_pixel();
  Picoseconds power = 1;
  while (static_cast<double>(power) * 10 <= least && power < 1'000'000'000'000'000'000) power *= 10;
  for (const Picoseconds step : {1, 2, 5}) {
    if (static_cast<double>(power * step) >= least) return power * step;
  }
  return power * 10;
}

}  // namespace orrery
