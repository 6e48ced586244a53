#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sim/summary/collect.h"
#include "sim/summary/records.h"

namespace orrery {

// The parts of one device's time, in nanoseconds. window: from the first kernel to the last, and at least the steps
// that the profiler marked. compute + exposed_communication + exposed_copy + idle = window, where communication is
// exposed while no kernel computes, and a copy while there is neither. idle = idle_host + idle_kernel + idle_peers +
// idle_other.
struct DeviceTimes {
  std::int64_t window = 0, compute = 0, exposed_communication = 0, exposed_copy = 0;
  std::int64_t communication = 0, copy = 0;  // time in which at least one collective, or copy, runs
  std::int64_t idle_host = 0;    // the launch of the kernel after the gap ended when the device was idle already
  std::int64_t idle_kernel = 0;  // gaps of at most 5 us between kernels that were launched in time
  std::int64_t idle_peers = 0;   // a collective waits for other ranks; known of our own traces alone
  std::int64_t idle_other = 0;   // the kernel was launched in time and waited: for a stream, an event, the step's end

  std::int64_t busy() const { return compute + exposed_communication + exposed_copy; }
  std::int64_t idle() const { return idle_host + idle_kernel + idle_peers + idle_other; }
};

inline double seconds_of(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

struct StepTimes {
  std::int64_t count = 0;
  std::int64_t begin = 0, end = 0;  // of the first step, and of the last
  std::int64_t sum = 0;             // durations of all steps
};

// Sums the steps of one process.
std::optional<StepTimes> step_times(const std::vector<StepRecord>& steps);

// Sums the times of the device's kernels, those from number `first` to `end` - 1 in the order of tie().
DeviceTimes device_times(const TraceRecords& records, std::size_t first, std::size_t end, const TraceNames& names,
                         const std::optional<StepTimes>& steps);

}  // namespace orrery
