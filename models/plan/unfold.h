#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"

namespace orrery {

// Returns the same plan with a slot for every rank, instead of one for each class of equal ranks (folded): each rank
// runs its class's tasks on frames of its own, and transfers run between the members of the rank's real groups. The
// simulated times of the unfolded plan must agree with the folded plan's to the picosecond.
Plan unfold(const Plan& folded);

// Returns the plan of some of the ranks, in the given order: transfers run between those members of the ranks' real
// groups that are among them. Times of transfers are those of the whole groups.
Plan unfold(const Plan& folded, const std::vector<std::int64_t>& ranks);

// Returns the plan of one rank: the tasks of its class in the folded plan, with the rank's own groups.
Plan instantiate(const Plan& folded, std::int64_t rank);

}  // namespace orrery
