#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/plan/plan.h"
#include "sim/engine/timing.h"

namespace orrery {

// Some data-parallel ranks of every pipeline stage, each with tasks and links of its own. Ranks that differ in speed
// are out of step: while one multiplies matrices, another is at work that the memory limits. A transfer that all of
// them take part in is at every moment as slow as the rank that its memory is most crowded on, and so it is slower than
// if all ranks did the same at the same time, as the ranks of a folded plan do. How much so depends on how many
// different things ranks do at a time, of which 64 ranks show nearly all.
struct OutOfStep {
  Plan plan;
  Timing timing;
  std::vector<std::int64_t> places;  // for each class of `plan`, the rank's place among those of its stage by speed
  std::int64_t ranks = 0;            // number of ranks of a stage; place ranks - 1 is that of the slowest
};

// Returns such ranks, no two of which are in one of the `sets` of a stage's ranks that meet in every layer; the more
// the fewer tasks the plan has. Returns none if the plan has several classes of ranks on a stage, or a single data
// rank.
std::optional<OutOfStep> ranks_out_of_step(const Plan& plan, const Timing& timing, std::int64_t sets);

}  // namespace orrery
