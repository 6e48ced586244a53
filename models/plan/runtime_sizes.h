#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// The work of an op on `rows` rows, given its work for the `planned` rows (more than 0) that the planner assumed. A
// collective's bytes do not follow from its rows alone and stay the same.
Work over_rows(const Work& work, std::int64_t planned, std::int64_t rows);

// The plan of a step whose runtime sizes are known, as if it had been planned with them: every frame gets works,
// buffers and transfers of its own sizes, so that frames share neither blocks nor ops. sizes: by slot, the sizes of its
// frames one after the other, as ranks record them (trace_file.h). A transfer between ranks moves what the busiest of
// them sends or receives. The blocks of the new plan list no ops: host time that is added per block
// (sim/cost/host_overheads.h) is found with the ops of the original plan.
Plan with_runtime_sizes(const Plan& unfolded, const std::vector<std::vector<std::int64_t>>& sizes);

// Whether a plan has runtime sizes.
bool has_runtime_sizes(const Plan& plan);

// How many runtime sizes a rank counts in each frame: none in a frame of a micro-batch that goes through the other copy
// of the model (Chimera, DualPipe), because no task has that frame.
std::vector<std::size_t> counted_sizes(const Plan& plan);  // numbers of sizes, by frame

}  // namespace orrery
