#pragma once

#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The beginning of remarks on transfers that the network slows.
inline constexpr std::string_view kNetworkRemark = "network: ";

// Returns remarks that a reader of a report needs beside the figures, for example that an input of the spec was
// replaced by another, so that the report answers another question than the one asked. Two samples:
//   attention: profile ampere has no times of cudnn; those of flash2 stand in
//   model.moe.imbalance: 100 is more than the busiest of 8 expert ranks can get: planned as 4 times the mean
std::vector<std::string> remarks(const Spec& spec, const Plan& plan, const Profile& profile);

}  // namespace orrery
