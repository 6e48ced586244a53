#pragma once

#include <atomic>
#include <optional>

#include "models/cost/profile.h"
#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "models/trace/trace.h"
#include "sim/cost/costs.h"
#include "sim/report/report.h"

namespace orrery {

// A prediction: spec -> plan -> trace -> report, everything kept.
struct Prediction {
  Profile profile;
  Plan plan;
  Costs costs;
  Trace trace;
  Report report;
};

// The built-in profile of the spec's device, or the profile at `path`. A profile that has only samples of a GPU's
// kernels takes precedence over the built-in formulas, which time the rest; so does an imported one.
Profile profile_for(const Spec& spec, const std::string& path);

// Predicts a spec. unfold: simulate every rank instead of one of each class. profile_path: a measured profile instead
// of the built-in one.
Prediction predict(const Spec& spec, bool unfold = false, const std::string& profile_path = "");

// Predicts a spec with a profile. If nothing of the profile is measured, residuals of published steps give the report's
// interval. Throws Stopped (simulate.h) soon after `stop` is set.
Prediction predict(const Spec& spec, Profile profile, bool unfold = false, const std::atomic<bool>* stop = nullptr);

// Adds the 80 % interval of the residuals of like published steps, unless the whole profile was measured: the few
// products and collectives in an import leave the rest as uncertain as it was.
void add_interval(Report& report, const Spec& spec, const Profile& profile);

// The moment when the first stage turns from forward to backward, and that stage. Up to then a step is the same
// whichever layers run again in backward.
struct Turn {
  Picoseconds time = 0;
  std::int64_t stage = -1;  // the stage; -1: none turns before the time
};

// The turns of a step that show how its forward went.
struct ForwardPart {
  Turn begins;  // a stage begins backward

  // A stage has run everything that its order has before backward: passes that wait for no gradient might begin.
  Turn free;
};
// The report of the folded step without the rest, and none if the step was given up because it is known to take longer
// than `latest`. Throws Stopped as predict() does.
struct ReportWithin {
  std::optional<Report> report{};
  ForwardPart forward{};
};
ReportWithin report_within(const Spec& spec, const Profile& profile, Picoseconds latest,
                           const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
