#pragma once

#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Several steps of a plan of one, one behind the other in every lane, as ranks run them that wait for nobody between
// steps: one for each entry of `sets_right`. A step of true finds that the update before it was wrong (RankSlot::
// validated): what it did so far stands twice in it, and between both the update that is taken back and made again.
Plan repeat_steps(const Plan& plan, const std::vector<bool>& sets_right);

}  // namespace orrery
