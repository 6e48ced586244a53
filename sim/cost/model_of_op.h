#pragma once

#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns for each op of a plan the model whose shape it has: the frozen model, if the op is part of the forward of one
// of that model's blocks, and otherwise the model that trains. The models are those of the given spec, which must
// outlive the list.
std::vector<const Model*> models_of_ops(const Spec& spec, const Plan& plan);

}  // namespace orrery
