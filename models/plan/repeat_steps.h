#pragma once

#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Returns a plan that repeats a plan of one step, once for each entry of `redoes_update`: the steps follow each other
// in every lane, without a barrier between them. If a step's entry is true, the step finds at task RankClass::validated
// that the update before it was wrong. The update is then rolled back and made again, and the step's tasks up to that
// task, which already ran with the wrong weights, run a second time.
Plan repeat_steps(const Plan& plan, const std::vector<bool>& redoes_update);

// Returns a plan that repeats a plan of one step so many times, in which a rank begins a step when all its tasks of the
// step before have ended. Its host issues tasks ahead meanwhile, and other ranks may be in another step.
Plan repeat_in_turn(const Plan& plan, std::int64_t steps);

}  // namespace orrery
