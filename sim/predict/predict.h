#pragma once

#include <atomic>
#include <optional>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "models/trace/trace.h"
#include "sim/cost/price.h"
#include "sim/report/report.h"

namespace orrery {

// spec -> plan -> trace -> report, everything kept.
struct Prediction {
  Profile profile;
  Plan plan;
  Prices prices;
  Trace trace;
  Report report;
};

// The built-in profile of the spec's device, or the one at `path`. One that has nothing but samples of a GPU's kernels
// goes before the built-in formulas, which price the rest; so does an imported one.
Profile profile_for(const Spec& spec, const std::string& path);

// unfold: simulate every rank instead of one of each class. profile_path: a measured profile instead of the built-in
// one.
Prediction predict(const Spec& spec, bool unfold = false, const std::string& profile_path = "");

// With a profile at hand. Where nothing of it is measured, residuals of published steps give the report's interval.
// Throws Stopped (simulate.h) soon after `stop` is set.
Prediction predict(const Spec& spec, Profile profile, bool unfold = false, const std::atomic<bool>* stop = nullptr);

// The 80 % interval of residuals of like published steps, unless all of the profile was measured: what an import knows
// of a few products and collectives leaves the rest as uncertain as it was.
void add_interval(Report& report, const Spec& spec, const Profile& profile);

// When the first stage turns from forward to backward, and which. Up to then a step is the same whatever runs again in
// backward.
struct Turn {
  Picoseconds time = 0;
  std::int64_t stage = -1;  // -1: none does before the time
};

// The folded step's report alone, given up as soon as the step is known to take longer than `latest`: none.
// Throws Stopped as predict() does.
struct ForwardPart {
  Turn begins;  // to run back
  Turn free;    // has run what its order has before that: what waits for no gradient might begin
};
struct ReportWithin {
  std::optional<Report> report{};
  ForwardPart forward{};
};
ReportWithin report_within(const Spec& spec, const Profile& profile, Picoseconds latest,
                           const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
