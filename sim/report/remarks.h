#pragma once

#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Lines that a reader of a report should know beside its figures: they name what was put in the place of what the spec
// asks for, and what makes it another question than the one that was meant.
//   attention: profile ampere has no times of cudnn; those of flash2 stand in
//   model.moe.imbalance: 100 is more than the busiest of 8 expert ranks can get: planned as 4 times the mean
std::vector<std::string> remarks(const Spec& spec, const Plan& plan, const Profile& profile);

}  // namespace orrery
