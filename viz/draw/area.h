#pragma once

#include <array>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The time (busy) that a process (a rank of the trace) spends on each kind of work, within a range of time. Time in
// which several lanes do the same kind of work counts once. exposed: the part of `busy` in which the process computes
// nothing. idle: time in which it neither computes nor communicates nor copies.
struct AreaSums {
  std::array<Picoseconds, kKinds> busy{}, exposed{};
  Picoseconds compute = 0, idle = 0;
};

// Computes the AreaSums (times by kind of work) of any range of time. One pass over the events stores cumulative sums
// after every few hundred events, so that only the events between two stored sums have to be read for a range.
class AreaIndex {
 public:
  AreaIndex() = default;
  explicit AreaIndex(const Timeline& timeline, unsigned threads = 1);
  // timeline: must be the timeline from which the index was built.
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
    MappedColumn<std::uint32_t> tracks;  // tracks (rows of events) that show work of the device (GPU)
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

// Returns, for each process, its total compute time.
std::vector<Picoseconds> compute_times(const Timeline& timeline, const AreaIndex& index);

// The largest sum of a memory counter's series within a range of time, and the time of that sum; {0, from} without
// samples.
struct MemoryPeak {
  double bytes = 0;
  Picoseconds time = 0;
};
MemoryPeak memory_peak(const Counter& counter, Picoseconds from, Picoseconds to);
// Returns the first time when the sum of the counter's series exceeds `capacity`; -1: never.
Picoseconds first_above(const Counter& counter, double capacity);
// Returns the index of the counter's last sample at or before a time; -1 if there is none.
std::ptrdiff_t sample_at(const Counter& counter, Picoseconds time);
// Returns the counter of the process's memory by category; nullptr if it has none.
const Counter* memory_of(const Process& process);

struct AreaRow {
  std::uint32_t process = 0;
  AreaSums sums;
  MemoryPeak memory;
};
std::vector<AreaRow> area_statistics(const Timeline& timeline, const AreaIndex& index, Picoseconds from,
                                     Picoseconds to);

}  // namespace orrery
