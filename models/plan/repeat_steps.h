#pragma once

#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Returns a plan that repeats a plan of one step, once for each entry of `redoes_update`: the steps follow each other
// in every lane, without a barrier between them. If a step's entry is true, the step finds at task RankClass::validated
// that the update before it was wrong. The update is then rolled back and made again, and the step's tasks up to that
// task, which already ran with the wrong weights, run a second time.
Plan repeat_steps(const Plan& plan, const std::vector<bool>& redoes_update);

}  // namespace orrery
