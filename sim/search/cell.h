#pragma once

#include "models/schedule/schedules.h"
#include "sim/search/space.h"

namespace orrery {

// A cell: all strategies with the same RankLayout and MemoryPlan; they differ in the third part of a strategy, the
// overlaps and the order of ranks.
struct SearchCell {
  RankLayout layout;
  MemoryPlan memory_plan;
  // number of copies of the model, and number of micro-batches of each copy
  std::int64_t copies = 1, micro_batches = 1;
};
SearchCell cell_of(const RankLayout& layout, const MemoryPlan& memory_plan);

// Numbers of weights (elements) of one pipeline stage.
struct StageWeights {
  std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
  std::int64_t first_elements = 0;  // number of elements in the stage's first chunk (virtual stage)
  std::int64_t layer_elements = 0;  // number of elements in transformer layers, without embedding and output
};

// The number of the stage's elements that one rank of the stage updates.
std::int64_t own_elements(const SearchCell& cell, const StageWeights& weights);

// The shape (stages, micro-batches, ...) with which the planner asks for the schedule's order, without times.
ScheduleShape schedule_shape(const Spec& base, const SearchCell& cell);

// Whether an interleaved schedule takes micro-batches in the order of Megatron-LM, for which the closed forms of the
// bounds hold; true for other schedules.
bool in_usual_turns(const Spec& base, const SearchCell& cell);

}  // namespace orrery
