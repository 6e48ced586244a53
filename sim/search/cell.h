#pragma once

#include "models/schedule/schedules.h"
#include "sim/search/space.h"

namespace orrery {

// The first two parts of a strategy, and what follows from them alone.
struct SearchCell {
  RankLayout layout;
  MemoryPlan memory_plan;
  std::int64_t copies = 1, micro_batches = 1;  // copies of the model, and micro-batches of each copy
};
SearchCell cell_of(const RankLayout& layout, const MemoryPlan& memory_plan);

// Weights of a stage, in elements.
struct StageWeights {
  std::int64_t elements = 0, expert_elements = 0, eight_bit_elements = 0;
  std::int64_t first_elements = 0;  // elements of the first chunk
  std::int64_t layer_elements = 0;  // elements of layers alone
};

// Elements whose update is the part of one rank of the stage.
std::int64_t own_elements(const SearchCell& cell, const StageWeights& weights);

// The shape with which the planner asks for the schedule, without times.
ScheduleShape schedule_shape(const Spec& base, const SearchCell& cell);

// Whether closed forms know the turns of an interleaved schedule: those of Megatron-LM.
bool in_usual_turns(const Spec& base, const SearchCell& cell);

}  // namespace orrery
