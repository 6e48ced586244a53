#pragma once

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The folded plan of one training step (one list of tasks per class of like ranks): layers are cut into stages, each
// stage's actions are ordered by its schedule and expanded into ops, transfers are ordered and batched, and gathers,
// reductions and frees are added as the sharding asks. Checked with check_plan(). Throws Error for what is not
// implemented.
Plan make_plan(const Spec& spec);

// The same plan unchecked, for a search, which throws most of its plans away: the search checks the plans that it
// keeps.
Plan make_unchecked_plan(const Spec& spec);

}  // namespace orrery
