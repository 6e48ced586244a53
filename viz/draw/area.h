#pragma once

#include <array>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The times that a process spends on each kind of work in a stretch of time. Time in which several lanes do the same
// counts once. Exposed: communication while nothing computes; the rest of a transfer's time is hidden. Idle: nothing
// computes, and no transfer is on its way.
struct AreaSums {
  std::array<Picoseconds, kKinds> busy{}, exposed{};
  Picoseconds compute = 0, idle = 0;
};

// Computes the sums of any window after one pass over the events: it keeps sums at every some-hundredth event, and
// walks over the events between.
class AreaIndex {
 public:
  AreaIndex() = default;
  explicit AreaIndex(const Timeline& timeline, unsigned threads = 1);
  // timeline: the timeline that the index was built from.
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
    MappedColumn<std::uint32_t> tracks;  // tracks with events of the device
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

// Total compute time, by process.
std::vector<Picoseconds> compute_times(const Timeline& timeline, const AreaIndex& index);

// The largest sum of a memory counter's series within a window, and the time of it; {0, from} without samples.
struct MemoryPeak {
  double bytes = 0;
  Picoseconds time = 0;
};
MemoryPeak memory_peak(const Counter& counter, Picoseconds from, Picoseconds to);
// First time at which the counter exceeds `capacity`; -1: never.
Picoseconds first_above(const Counter& counter, double capacity);
// Index of the sample that is valid at a time, or -1 before the first sample.
std::ptrdiff_t sample_at(const Counter& counter, Picoseconds time);
// The process's counter of memory by category, or nullptr.
const Counter* memory_of(const Process& process);

struct AreaRow {
  std::uint32_t process = 0;
  AreaSums sums;
  MemoryPeak memory;
};
std::vector<AreaRow> area_statistics(const Timeline& timeline, const AreaIndex& index, Picoseconds from,
                                     Picoseconds to);

}  // namespace orrery
