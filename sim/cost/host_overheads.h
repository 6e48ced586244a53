#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/spec/software.h"
#include "sim/engine/timing.h"

namespace orrery {

// Adds to the ops' issue times the host's work besides launching kernels. Some of this work comes once per layer and
// pass (with `far_us` microseconds more); some once per micro-batch, in forward of a stage's first block and in
// backward of its last; and some once per step, divided among the ops that update the weights. row: times of every op
// on one class of ranks.
void add_host_overheads(const Plan& plan, const Software& software, double far_us, std::vector<OpTiming>& row);

}  // namespace orrery
