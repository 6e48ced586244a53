#pragma once

#include "models/plan.h"
#include "models/profile.h"
#include "models/spec.h"
#include "models/trace.h"
#include "sim/price.h"
#include "sim/report.h"

namespace orrery {

// spec -> plan -> trace -> report, everything kept.
struct Prediction {
  Profile profile;
  Plan plan;
  Prices prices;
  Trace trace;
  Report report;
};

// unfold: simulate every rank instead of one of each class. profile_path: a measured profile instead of the built-in
// one.
Prediction predict(const Spec& spec, bool unfold = false, const std::string& profile_path = "");

}  // namespace orrery
