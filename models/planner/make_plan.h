#pragma once

#include <cstdint>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns the folded plan of one training step (one list of tasks per class of ranks). Layers are cut into stages, each
// stage's actions are ordered by its schedule and expanded into ops, transfers are ordered and batched, and gathers,
// reductions and frees are added as the sharding needs them. The plan is checked with check_plan(). Throws Error for a
// spec that uses options which are not implemented.
Plan make_plan(const Spec& spec);

// Whether classes of ranks that do the same work are written once and copied, or each is laid out and written. The plan
// is the same.
enum class AlikeClasses : std::uint8_t { copied, written };

// Returns the plan of make_plan(), but not checked with check_plan(), for a search, which discards most of its plans
// and checks only the plans that it keeps.
Plan make_unchecked_plan(const Spec& spec, AlikeClasses how = AlikeClasses::copied);

}  // namespace orrery
