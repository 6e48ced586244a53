#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/spec/software.h"
#include "sim/engine/timing.h"

namespace orrery {

// What a stack's host does beside launching and calling, added to the issue of the ops of a row: per layer and pass
// (`far_us` further, microseconds), per micro-batch at a stage's ends, and once a step, in however many parts a rank
// updates.
void add_host_overheads(const Plan& plan, const Software& software, double far_us, std::vector<OpTiming>& row);

}  // namespace orrery
