#pragma once

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The folded plan of one training step: layers cut into stages, each stage's order from its schedule, every phase
// expanded into its blocks' ops, transfers ordered and batched, and what the sharding row gathers, reduces and frees.
// Checked with check_plan() before it is returned. Throws Error for what is not built.
Plan make_plan(const Spec& spec);

// The same plan unchecked, for a search, which throws most of its plans away: the search checks the plans that it
// keeps.
Plan make_unchecked_plan(const Spec& spec);

}  // namespace orrery
