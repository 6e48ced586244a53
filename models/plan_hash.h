#pragma once

#include <string>

#include "models/plan.h"

namespace orrery {

// 16 hexadecimal digits that change with anything the engines read: ops and their shapes, tasks, dependencies, matches,
// frames and groups. The same on every machine and compiler.
std::string plan_hash(const Plan& plan);

}  // namespace orrery
