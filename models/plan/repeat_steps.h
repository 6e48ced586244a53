#pragma once

#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Repeats a plan of one step, once for each entry of `redoes_update`: the steps follow each other in every lane,
// without a barrier between them. If an entry is true, its step finds at task RankClass::validated that the update
// before it was wrong: the update is rolled back and made again, and the step's tasks up to that task run twice, before
// and after the roll-back.
Plan repeat_steps(const Plan& plan, const std::vector<bool>& redoes_update);

}  // namespace orrery
