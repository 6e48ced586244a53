#pragma once

#include <string>

#include "models/cost/profile.h"
#include "models/spec/spec.h"

namespace orrery {

// Returns a profile with the constants of kernels that only a model which generates text runs, and the law of its
// stack's kernels of experts where they were measured on GPUs like the spec's.
Profile generation_profile(const Spec& spec, Profile profile);

// A remark where a model's experts would run by the stack's kernels, but these were not measured in the spec's format
// on GPUs like its own; else "". profile: that of generation_profile().
std::string experts_remark(const Spec& spec, const Profile& profile);

}  // namespace orrery
