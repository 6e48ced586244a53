#pragma once

#include <string>

#include "models/plan/plan.h"

namespace orrery {

// Returns a hash, in 16 hexadecimal digits, of everything in a plan that the simulator or the executor uses: ops and
// their shapes, blocks, tasks, dependencies, matches (which tasks meet in a transfer), frames (instances of buffers)
// and process groups. Fields that only the planner reads (Op::waits_for, Block::parameter_elements) are left out. The
// digits are the same on every machine and compiler.
std::string plan_hash(const Plan& plan);

}  // namespace orrery
