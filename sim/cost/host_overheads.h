#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/spec/software.h"
#include "sim/engine/timing.h"

namespace orrery {

// Adds to the issue times of a timing row (the ops' times on one kind of ranks) the host's work besides launching
// kernels: per layer and pass (`far_us` microseconds more), per micro-batch at the ends of a stage, and once a step,
// divided over the parts in which a rank updates the weights.
void add_host_overheads(const Plan& plan, const Software& software, double far_us, std::vector<OpTiming>& row);

}  // namespace orrery
