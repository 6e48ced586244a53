#pragma once

#include "models/cost/profile.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns a profile with the constants of kernels that only a model which generates text runs, and the law of its
// stack's kernels of experts where they were measured on GPUs like the spec's.
Profile generation_profile(const Spec& spec, Profile profile);

}  // namespace orrery
