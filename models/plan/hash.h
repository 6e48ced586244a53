#pragma once

#include <string>

#include "models/plan/plan.h"

namespace orrery {

// 16 hexadecimal digits that change with every field of a plan: ops and their shapes, blocks, tasks, dependencies,
// matches, frames and groups. The same on every machine and compiler.
std::string plan_hash(const Plan& plan);

}  // namespace orrery
