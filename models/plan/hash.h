#pragma once

#include <string>

#include "models/plan/plan.h"

namespace orrery {

// 16 hexadecimal digits that change with all that an engine plays of a plan: ops and their shapes, blocks, tasks,
// dependencies, matches, frames and groups. Fields that the planner alone reads (Op::waits_for,
// Block::parameter_elements) are left out. The digits are the same on every machine and compiler.
std::string plan_hash(const Plan& plan);

}  // namespace orrery
