#pragma once

#include <map>
#include <vector>

#include "viz/timeline/timeline.h"

namespace orrery {

// The durations of the events of one label (name and kind) in a range of time, over all ranks that are shown. Events
// count if they begin in the range.
struct OpStatistics {
  std::uint32_t label = 0;
  std::int64_t count = 0;
  Picoseconds total = 0, least = 0, median = 0, p95 = 0, most = 0;
  Picoseconds mean() const { return count > 0 ? total / count : 0; }
};
// Returns the statistics of some durations, at least one, which it reorders.
OpStatistics statistics_of(std::uint32_t label, std::vector<Picoseconds>& durations);
// Returns whether all events of a trace are a host's: those of a profile without a device.
bool is_of_hosts(const Timeline& t);
// Returns the statistics of all labels, the one with the longest total first; without those of host work, unless the
// trace has no other.
std::vector<OpStatistics> op_statistics(const Timeline& t, Picoseconds from, Picoseconds to);

// A histogram of durations: counts[i] is the number of durations from `least` + i * `width` on, up to the next bin.
struct Histogram {
  Picoseconds least = 0, width = 1;
  std::vector<std::int64_t> counts;
};
Histogram histogram_of(const std::vector<Picoseconds>& durations, std::size_t bins);

// The durations of one op by rank and micro-batch: mean[process][column] is the mean over the op's events, -1 where
// there is none. columns: the micro-batches, in ascending order; {-1} for events without one.
struct OpSpread {
  std::vector<Picoseconds> durations;
  std::vector<std::int32_t> columns;
  std::vector<std::uint32_t> processes;  // those in which the op occurs
  std::vector<std::vector<Picoseconds>> mean;
};
// Collects durations of one op, each with its process and micro-batch, for an OpSpread.
class SpreadSums {
 public:
  void add(std::uint32_t process, std::int32_t micro_batch, Picoseconds duration);
  OpSpread spread() const;

 private:
  struct Sum {
    Picoseconds time = 0;
    std::int64_t count = 0;
  };
  std::map<std::uint32_t, std::map<std::int32_t, Sum>> sums_;  // by process and micro-batch
  std::vector<Picoseconds> durations_;
};
OpSpread spread_of(const Timeline& t, std::uint32_t label, Picoseconds from, Picoseconds to);

}  // namespace orrery
