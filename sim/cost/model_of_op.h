#pragma once

#include <cstdint>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns the model of whose forward or backward an op is a part: the one that trains, or the frozen one beside it.
const Model& model_of_op(const Spec& spec, const Plan& plan, std::uint32_t op);

}  // namespace orrery
