#pragma once

#include <cstdint>
#include <vector>

#include "models/layout/draft.h"
#include "models/planner/task_writer.h"

namespace orrery {

// ZeRO++ (Wang et al. 2023, 2306.10209): transfers of a unit in few bits. Forward gathers weights that each rank
// narrows to eight bits, and keeps this rank's part of what the ranks of its node hold together; backward gathers those
// parts inside the node. Gradients are reduced by an all-to-all of narrow ones in the node, a sum, and an all-to-all of
// the sums between nodes. gather_narrow, gather_in_node: issue the gather, in place of that of ZeRO-3. widen,
// keep_secondary: what the compute lane does when a gathered unit has arrived. reduce_narrow: returns the lane of the
// last transfer.
void gather_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase,
                   const std::vector<TaskId>& after);
void gather_in_node(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase,
                    const std::vector<TaskId>& after);
void widen(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase);
void keep_secondary(const Draft& draft, TaskWriter& writer, std::uint32_t unit, Phase phase);
LaneKind reduce_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t unit);

}  // namespace orrery
