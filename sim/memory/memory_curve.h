#pragma once

#include <cstdint>
#include <vector>

#include "models/trace/trace.h"

namespace orrery {

// The memory that one class of ranks holds in each category (weights, activations, ...), step by step: a sample
// wherever a task changes it. Times are those at which the host issues tasks, within the step. The largest sum of the
// samples is SlotMemory::peak.
using MemoryCurve = std::vector<std::vector<MemorySample>>;

// The memory samples of the first `steps` steps. For one step, those of a steady step in which the ranks peak: the
// second, unless a later one holds more. Sorted by class of ranks, then time. Where fewer steps were replayed, the last
// one is repeated.
std::vector<MemorySample> samples_of(const std::vector<MemoryCurve>& curves, std::int64_t steps, Picoseconds step_time);

}  // namespace orrery
