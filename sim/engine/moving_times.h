#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// A time for each of a number of things, of which the earliest is asked for while times move: a binary heap in which
// each thing has one place, so that no outdated times pile up. A thing without a time has kNone.
class MovingTimes {
 public:
  static constexpr Picoseconds kNone = std::numeric_limits<Picoseconds>::max();

  explicit MovingTimes(std::uint32_t count = 0) { grow(count); }

  // Adds things without a time until there are `count`.
  void grow(std::uint32_t count) {
    for (auto thing = static_cast<std::uint32_t>(times_.size()); thing < count; ++thing) {
      times_.push_back(kNone);
      order_.push_back(thing);
      places_.push_back(thing);
    }
  }

  Picoseconds earliest() const { return order_.empty() ? kNone : times_[order_.front()]; }
  std::uint32_t first() const { return order_.front(); }

  void move(std::uint32_t thing, Picoseconds time) {
    const bool earlier = time < times_[thing];
    times_[thing] = time;
    earlier ? lift(thing) : sink(thing);
  }

 private:
  void put(std::uint32_t thing, std::size_t place) {
    order_[place] = thing;
    places_[thing] = static_cast<std::uint32_t>(place);
  }

  void lift(std::uint32_t thing) {
    std::size_t place = places_[thing];
    const Picoseconds time = times_[thing];
    while (place > 0 && time < times_[order_[(place - 1) / 2]]) {
      put(order_[(place - 1) / 2], place);
      place = (place - 1) / 2;
    }
    put(thing, place);
  }

  void sink(std::uint32_t thing) {
    std::size_t place = places_[thing];
    const Picoseconds time = times_[thing];
    for (std::size_t child = 2 * place + 1; child < order_.size(); child = 2 * place + 1) {
      if (child + 1 < order_.size() && times_[order_[child + 1]] < times_[order_[child]]) ++child;
      if (times_[order_[child]] >= time) break;
      put(order_[child], place);
      place = child;
    }
    put(thing, place);
  }

  std::vector<Picoseconds> times_;     // for each thing
  std::vector<std::uint32_t> order_;   // the things as a heap, the earliest first
  std::vector<std::uint32_t> places_;  // for each thing, its place in order_
};

}  // namespace orrery
