#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/memory/rank.h"

namespace orrery {

// Snapshots from which a run with parameter servers can resume. A server saves its weights and optimizer states; a
// worker, which pulls its weights again, saves the losses so far. Every rank writes one file, which appears only when
// it is complete; the snapshot before the previous one is removed, so that there is always one that all ranks have. The
// numbers are stored as they are in this machine's memory.
//   folder/snapshot_RANK.STEP

// every: number of steps between snapshots. Both functions throw Error "path: what" for a file that cannot be written
// or that does not match the rank.
void write_snapshot(const std::string& folder, const Rank& rank, const Buffers& buffers, std::int64_t step,
                    std::int64_t every, const std::vector<double>& losses);
// Restores the states; returns the losses of the earlier steps.
std::vector<double> read_snapshot(const std::string& folder, const Rank& rank, Buffers& buffers, std::int64_t step);
std::vector<double> parse_snapshot(std::string_view bytes, const std::string& path, const Rank& rank, Buffers& buffers,
                                   std::int64_t step);

}  // namespace orrery
