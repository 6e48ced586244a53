#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Returns the work of an op on `rows` rows, given its work for the `planned` rows (more than 0) that the planner
// assumed. A collective's bytes are not changed, because they do not follow from this rank's rows alone.
Work over_rows(const Work& work, std::int64_t planned, std::int64_t rows);

// Returns the plan of a step whose runtime sizes are known, as if it had been planned with these sizes. Every frame
// (instance of a block's buffers for one micro-batch) gets ops, buffers and transfers of its own sizes, so that frames
// share neither blocks nor ops. sizes: for each rank, the sizes of its frames one after the other, as ranks record them
// (trace_file.h). A transfer between ranks moves the largest number of bytes that one of its ranks sends or receives.
// The blocks of the new plan list no ops, so host time that is added per block (sim/cost/host_overheads.h) must be
// found with the original plan.
Plan with_runtime_sizes(const Plan& unfolded, const std::vector<std::vector<std::int64_t>>& sizes);

// Returns whether a plan has sizes that are known only at run time, such as the numbers of tokens of experts.
bool has_runtime_sizes(const Plan& plan);

// Returns for each frame (instance of a block's buffers; the index is its id) the number of runtime sizes that a rank
// counts in it: 0 in a frame of a micro-batch that goes through the other copy of the model (Chimera, DualPipe),
// because no task uses that frame.
std::vector<std::size_t> counted_sizes(const Plan& plan);

}  // namespace orrery
