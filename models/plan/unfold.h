#pragma once

#include "models/plan/plan.h"

namespace orrery {

// The same plan with a slot for every rank: each rank runs its class's tasks on frames of its own, and transfers run
// between the members of the rank's real groups. A simulation of it must agree with the folded plan to the picosecond.
Plan unfold(const Plan& folded);

// The plan of one rank: the folded plan's slot of the rank's class, and the rank's groups.
Plan instantiate(const Plan& folded, std::int64_t rank);

}  // namespace orrery
