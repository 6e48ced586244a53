#pragma once

#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Repeats a plan of one step: several steps one behind the other in every lane, as ranks run them that wait for nobody
// between steps; one for each entry of `sets_right`. A true entry makes a step that finds the update before it wrong
// (RankClass::validated): the step's tasks so far stand twice in it, and between both the update that is taken back and
// made again.
Plan repeat_steps(const Plan& plan, const std::vector<bool>& sets_right);

}  // namespace orrery
