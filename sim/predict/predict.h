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

// The prediction of a step with all intermediate values: a spec gives a plan, a plan its costs and a trace, and these
// the report.
struct Prediction {
  Profile profile;
  Plan plan;
  Costs costs;
  Trace trace;
  Report report;
  Cluster cluster;  // the spec's, with the load that neighbours' jobs were found to put on its uplinks
};

// The profile (rates of kernels and links) in the file `path`, or the built-in one for the spec's device if `path` is
// "". A profile that is imported, or that holds only samples of a GPU's kernels, is used where it has samples; the
// built-in formulas give all other times.
Profile profile_for(const Spec& spec, const std::string& path);

// Throws Error for a spec with workload: generate, which has no training step (sim/generate predicts it).
void require_training(const Spec& spec);

// Predicts a spec. unfold: simulate every rank instead of one of each class of equal ranks. profile_path: a measured
// profile instead of the built-in one.
Prediction predict(const Spec& spec, bool unfold = false, const std::string& profile_path = "");

// Predicts a spec with a profile. If nothing in the profile is measured, the report's interval comes from the errors of
// predictions of published steps. Throws Stopped (simulate.h) soon after `stop` is set.
Prediction predict(const Spec& spec, Profile profile, bool unfold = false, const std::atomic<bool>* stop = nullptr);

// Adds to a report the interval in which 80 % of measured step times of similar published steps lay around their
// predictions. Nothing is added where the profile holds measurements of all ops; the few measured matrix products and
// collectives of an imported profile do not count as such.
void add_interval(Report& report, const Spec& spec, const Profile& profile);

// The time in a step at which the first backward pass of any pipeline stage begins, and that stage. Up to that time a
// step runs alike whichever layers are recomputed in backward.
struct Turn {
  Picoseconds time = 0;
  std::int64_t stage = -1;  // index of the stage; -1: no backward pass begins in the simulated time
};

// Times in a simulated step that depend only on the forward passes before the first backward pass.
struct ForwardPart {
  Turn begins;  // time and stage of the first backward pass of the step

  // The earliest time at which any stage has ended the passes before its first backward, and that stage. Recomputation,
  // which waits for no gradient, could begin at this time.
  Turn free;
};
// The report of a step that is simulated with one rank of each class of equal ranks; no report if the simulation was
// stopped because the step takes longer than `latest`. Throws Stopped as predict() does.
struct ReportWithin {
  std::optional<Report> report{};
  ForwardPart forward{};
};
ReportWithin report_within(const Spec& spec, const Profile& profile, Picoseconds latest,
                           const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
