#pragma once

#include <cstdint>
#include <vector>

#include "models/trace/trace.h"

namespace orrery {

// [step]: the allocated memory of one class of ranks by category (weights, activations, ...), with a sample wherever a
// task changes it. The time of a sample is when the host issues the task, from the start of the step. The largest sum
// of a sample over its categories is SlotMemory::peak.
using MemoryCurve = std::vector<std::vector<MemorySample>>;

// The memory samples of the first `steps` steps, sorted by class of ranks, then time. For one step it gives the steady
// step in which the ranks have their peak: the second step, unless a later one has a higher peak. Where fewer steps
// were replayed, the last one is repeated.
std::vector<MemorySample> samples_of(const std::vector<MemoryCurve>& curves, std::int64_t steps, Picoseconds step_time);

}  // namespace orrery
