#pragma once

#include "models/schedule/schedules.h"
#include "sim/search/space.h"

namespace orrery {

// A cell of the search space: all strategies with the same RankLayout (parallel degrees, micro-batch size) and the same
// MemoryPlan (schedule, recomputation, sharding, offload). They differ only in overlaps and in the order of ranks.
struct SearchCell {
  RankLayout layout;
  MemoryPlan memory_plan;
  // Number of copies of the model in the pipeline (2 in Chimera and DualPipe), and number of micro-batches of each
  // copy.
  std::int64_t copies = 1, micro_batches = 1;
};
SearchCell cell_of(const RankLayout& layout, const MemoryPlan& memory_plan);

// Numbers of weights (elements) of one pipeline stage. expert_elements: those of experts; elements: all others;
// eight_bit_elements: those of either that products read in eight bits. frozen_elements, frozen_expert_elements: those
// of the frozen model beside the one that trains, which are in none of the other numbers.
struct StageWeights {
  std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
  std::int64_t frozen_elements = 0, frozen_expert_elements = 0;
  std::int64_t first_elements = 0;  // those of `elements` in the stage's first chunk (virtual stage)
  std::int64_t layer_elements = 0;  // those of `elements` in transformer layers, without embedding and output
};

// How many of the stage's weights (elements) one rank of the stage updates.
std::int64_t own_elements(const SearchCell& cell, const StageWeights& weights);

// The arguments (stages, micro-batches, chunks) of the planner's request for a schedule's order of passes. The times of
// passes, on which some schedules' orders depend, are left unset.
ScheduleShape schedule_shape(const Spec& base, const SearchCell& cell);

// Whether an interleaved schedule sends micro-batches through the chunks in Megatron-LM's order, which the closed
// formulas of the bounds assume; true for every schedule that is not interleaved.
bool in_megatron_order(const Spec& base, const SearchCell& cell);

}  // namespace orrery
