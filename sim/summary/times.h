#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/summary/collect.h"
#include "sim/summary/records.h"

namespace orrery {

// How one device spends its time, in nanoseconds. window: from the first kernel to the last, and at least the steps
// that the profiler marked. compute + exposed_communication + exposed_copy + idle = window, where communication is
// exposed while no kernel computes, and a copy while neither compute nor communication runs. idle = idle_host +
// idle_kernel + idle_peers + idle_other.
struct DeviceTimes {
  std::int64_t window = 0, compute = 0, exposed_communication = 0, exposed_copy = 0;
  std::int64_t communication = 0, copy = 0;  // time in which any collective runs, and any copy, overlaps included
  std::int64_t idle_host = 0;    // idle gaps before a kernel whose launch ended when the device was idle already
  std::int64_t idle_kernel = 0;  // idle gaps of at most 5 us before a kernel that was launched in time
  std::int64_t idle_peers = 0;   // idle time in which a collective waits for other ranks; only in Orrery's own traces
  // idle gaps of more than 5 us before a kernel launched in time: it waited for a stream, an event or the step's end
  std::int64_t idle_other = 0;

  std::int64_t busy() const { return compute + exposed_communication + exposed_copy; }
  std::int64_t idle() const { return idle_host + idle_kernel + idle_peers + idle_other; }
};

inline double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

struct StepTimes {
  std::int64_t count = 0;
  std::int64_t begin = 0, end = 0;  // begin of the first step, end of the last
  std::int64_t sum = 0;             // durations of all steps, added up
};

// Sums the durations of the steps of one process; nullopt if there is no step.
std::optional<StepTimes> step_times(const std::vector<StepRecord>& steps);

// Sums the times of one device's kernels: those at indices `first` to `end` - 1 of the records, which tie() has sorted
// by device and time.
DeviceTimes device_times(const TraceRecords& records, std::size_t first, std::size_t end, const TraceNames& names,
                         const std::optional<StepTimes>& steps);

}  // namespace orrery
