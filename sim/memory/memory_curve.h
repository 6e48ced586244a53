#pragma once

#include <cstdint>
#include <vector>

#include "models/trace/trace.h"

namespace orrery {

// The memory that a slot holds of each category, a sample wherever a task changes it, by step from the first; times are
// those of the memory clock within the step. The largest sum of a slot's samples is its SlotMemory::peak.
using MemoryCurve = std::vector<std::vector<MemorySample>>;

// The samples of so many steps in a row from the first. For one step, the samples of a steady step in which the slot
// peaks: the second, unless a later one holds more. Sorted by slot, then time. A slot that was played for fewer steps
// repeats the last.
std::vector<MemorySample> samples_of(const std::vector<MemoryCurve>& curves, std::int64_t steps, Picoseconds step_time);

}  // namespace orrery
