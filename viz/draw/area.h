#pragma once

#include <array>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// How a process spends a stretch of time. Time in which several lanes do the same counts once. Exposed: while nothing
// computes; the rest of a transfer's time is hidden. Idle: nothing computes, nothing is on its way.
struct AreaSums {
  std::array<Picoseconds, kKinds> busy{}, exposed{};
  Picoseconds compute = 0, idle = 0;
};

// Answers for any window after one pass over the events: sums up to every some-hundredth event, and a walk over what
// lies between.
class AreaIndex {
 public:
  AreaIndex() = default;
  explicit AreaIndex(const Timeline& timeline, unsigned threads = 1);
  // timeline: the one that it was made of.
  AreaSums sums(const Timeline& timeline, std::uint32_t process, Picoseconds from, Picoseconds to) const;
  std::size_t bytes() const;
  template <class A>
  friend void fields(A& a, AreaIndex& index) {
    a(index.processes_);
  }

 private:
  struct Point {
    Picoseconds time = 0;
    AreaSums sums;
  };
  struct OfProcess {
    MappedColumn<std::uint32_t> tracks;  // those with events of the device
    MappedColumn<Point> points;
    template <class A>
    friend void fields(A& a, OfProcess& p) {
      a(p.tracks);
      a(p.points);
    }
  };
  static AreaSums up_to(const Timeline& timeline, const OfProcess& process, Picoseconds time);

  std::vector<OfProcess> processes_;
};

// By process: how long it computes in all.
std::vector<Picoseconds> compute_times(const Timeline& timeline, const AreaIndex& index);

// The largest sum of a memory counter's series within a window, and when; {0, from} without samples.
struct MemoryPeak {
  double bytes = 0;
  Picoseconds time = 0;
};
MemoryPeak memory_peak(const Counter& counter, Picoseconds from, Picoseconds to);
// When it first holds more than a capacity; -1: never.
Picoseconds first_above(const Counter& counter, double capacity);
// The sample that holds at a time, or -1 before the first.
std::ptrdiff_t sample_at(const Counter& counter, Picoseconds time);
// The counter of a process that is memory by category, or nullptr.
const Counter* memory_of(const Process& process);

struct AreaRow {
  std::uint32_t process = 0;
  AreaSums sums;
  MemoryPeak memory;
};
std::vector<AreaRow> area_statistics(const Timeline& timeline, const AreaIndex& index, Picoseconds from,
                                     Picoseconds to);

}  // namespace orrery
