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

// A prediction (spec -> plan -> trace -> report) with all its intermediate values.
struct Prediction {
  Profile profile;
  Plan plan;
  Costs costs;
  Trace trace;
  Report report;
};

// The built-in profile of the spec's device, or the profile at `path`. A profile that holds only samples of a GPU's
// kernels, or an imported one, is used where it has samples; the built-in formulas time everything else.
Profile profile_for(const Spec& spec, const std::string& path);

// Predicts a spec. unfold: simulate every rank instead of one of each class of equal ranks. profile_path: a measured
// profile instead of the built-in one.
Prediction predict(const Spec& spec, bool unfold = false, const std::string& profile_path = "");

// Predicts a spec with a profile. If nothing of the profile is measured, the errors (residuals) of predictions of
// published steps give the report's interval. Throws Stopped (simulate.h) soon after `stop` is set.
Prediction predict(const Spec& spec, Profile profile, bool unfold = false, const std::atomic<bool>* stop = nullptr);

// Adds the interval in which 80 % of similar published steps lay around their predictions, unless the complete profile
// was measured: the few matrix products and collectives of an imported profile do not make the rest more certain.
void add_interval(Report& report, const Spec& spec, const Profile& profile);

// The moment of a step at which the first of all pipeline stages changes from forward to backward passes, and that
// stage. Up to that moment a step is the same whichever layers are recomputed in backward.
struct Turn {
  Picoseconds time = 0;
  std::int64_t stage = -1;  // index of this stage; -1: no stage begins backward in the simulated time
};

// Moments of a simulated step that depend only on the forward passes before the first backward pass.
struct ForwardPart {
  Turn begins;  // when the first stage begins a backward pass

  // When the first stage has ended all passes that its order has before backward: recomputation, which waits for no
  // gradient, might begin then.
  Turn free;
};
// The report of a step, simulated for one rank of each class; no report if the simulation was given up because the step
// is known to take longer than `latest`. Throws Stopped as predict() does.
struct ReportWithin {
  std::optional<Report> report{};
  ForwardPart forward{};
};
ReportWithin report_within(const Spec& spec, const Profile& profile, Picoseconds latest,
                           const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
