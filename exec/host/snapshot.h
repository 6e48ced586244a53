#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exec/memory/buffers.h"
#include "exec/memory/rank.h"

namespace orrery {

// Snapshots from which a run with parameter servers can resume. A server saves its weights and optimizer states; a
// worker, which pulls the weights again, saves the losses so far. Every rank writes a file, which appears only when it
// is complete; only the last two snapshots are kept, so that there is always one that all ranks have written. Numbers
// are stored as in this machine's memory. The file of a rank is
//   folder/snapshot_RANK.STEP

// every: number of steps between snapshots. write_snapshot() and read_snapshot() throw Error "path: reason" for a file
// that cannot be written or that does not match the rank.
void write_snapshot(const std::string& folder, const Rank& rank, const Buffers& buffers, std::int64_t step,
                    std::int64_t every, const std::vector<double>& losses);
// Restores a rank's states from its snapshot; returns the losses of the earlier steps.
std::vector<double> read_snapshot(const std::string& folder, const Rank& rank, Buffers& buffers, std::int64_t step);
std::vector<double> parse_snapshot(std::string_view bytes, const std::string& path, const Rank& rank, Buffers& buffers,
                                   std::int64_t step);

}  // namespace orrery
