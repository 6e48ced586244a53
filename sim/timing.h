#pragma once

#include <cstdint>
#include <vector>

#include "models/plan.h"
#include "models/units.h"

namespace orrery {

// What a task of an op costs when nothing else runs.
struct OpTiming {
  Picoseconds duration = 0;
  Picoseconds issue = 0;       // of the launching thread
  std::uint32_t pressure = 0;  // of a transfer: how much longer compute of the same rank takes meanwhile, in 1/65536
};

// Durations for every op of a plan. Ranks whose groups lie differently on the machine (a stage whose tensor group
// leaves the node) have a row of their own.
struct Timing {
  std::vector<std::uint32_t> row_of_slot;
  std::vector<std::vector<OpTiming>> rows;  // [row][op]

  const OpTiming& of(std::uint32_t slot, std::uint32_t op) const { return rows[row_of_slot[slot]][op]; }
};

}  // namespace orrery
