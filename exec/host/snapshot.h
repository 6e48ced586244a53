#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/memory/rank.h"

namespace orrery {

// What a run can go on from after so many steps: of every server its weights and optimizer states, of every worker,
// which pulls its weights anew, the losses so far. One file of each rank; it appears when it is whole, and the one
// before the last is removed, so that there is always one that all ranks have. Files are of this machine: numbers as
// they are in memory.
//   folder/snapshot_RANK.STEP

// every: steps between snapshots. Throw Error "path: what" for a file that cannot be written, or that does not fit.
void write_snapshot(const std::string& folder, const Rank& rank, const Buffers& buffers, std::int64_t step,
                    std::int64_t every, const std::vector<double>& losses);
// Puts the states where they were; returns the losses of the steps before.
std::vector<double> read_snapshot(const std::string& folder, const Rank& rank, Buffers& buffers, std::int64_t step);
std::vector<double> parse_snapshot(std::string_view bytes, const std::string& path, const Rank& rank, Buffers& buffers,
                                   std::int64_t step);

}  // namespace orrery
