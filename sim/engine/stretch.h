#pragma once

#include <algorithm>
#include <cstdint>

#include "models/base/units.h"

namespace orrery {

// How running tasks get on, for Clocks: what is left is the time that the task would still take alone, the speed is a
// stretch, the time that the task takes now over the time that it takes alone, in units of 1/65536. Progress and ends
// are rounded to whole picoseconds, so that the progress of two times may differ from that of both together.
struct Stretched {
  using Length = Picoseconds;
  using Speed = std::uint32_t;
  static constexpr Speed kAlone = 65536;
  static constexpr bool kAdditive = false;

  static Length progress(Picoseconds time, Speed stretch) { return scale(time, kAlone, stretch); }
  static Picoseconds time_for(Length left, Speed stretch) {
    return stretch == kAlone ? left : scale(left, stretch, kAlone);
  }
  static Length after(Length left, Length progress) { return left - std::min(left, progress); }

 private:
  __extension__ using Wide = unsigned __int128;

  // Returns a * b / c, rounded to nearest; a * b may exceed 64 bits.
  static Picoseconds scale(Picoseconds a, std::uint64_t b, std::uint64_t c) {
    return static_cast<Picoseconds>((static_cast<Wide>(a) * b + c / 2) / c);
  }
};

}  // namespace orrery
