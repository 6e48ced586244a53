#pragma once

#include <cstdint>
#include <vector>

#include "models/trace/trace.h"

namespace orrery {

// For each step, the allocated memory of one class of ranks by category (weights, activations, ...), with a sample for
// every task that changes it. The time of a sample is when the host issues the task, counted from the start of the
// step. The largest sum of a sample over its categories is SlotMemory::peak.
using MemoryCurve = std::vector<std::vector<MemorySample>>;

// The memory samples of the first `steps` steps, sorted by class of ranks, then time. If only one step is asked for,
// the samples of each class are those of the step with its highest peak. If fewer steps were replayed than are asked
// for, the last one is repeated.
std::vector<MemorySample> samples_of(const std::vector<MemoryCurve>& curves, std::int64_t steps, Picoseconds step_time);

}  // namespace orrery
