#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/spec/software.h"
#include "sim/engine/timing.h"

namespace orrery {

// Adds to the ops' issue times the host's work besides launching kernels. Some of this work comes once per layer and
// pass (with `far_us` microseconds more); some comes once per micro-batch, where a stage begins its forward (at the
// embedding, or at the receive from the previous stage) and where it begins its backward (at the output, or at the
// exchange with the next stage); and some comes once per step, divided among the ops that update the weights. row:
// times of every op on one class of ranks.
void add_host_overheads(const Plan& plan, const Software& software, double far_us, std::vector<OpTiming>& row);

}  // namespace orrery
