#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"
#include "sim/engine/timing.h"
#include "sim/report/report.h"

namespace orrery {

// Ranks of one pipeline stage that wait for each other in every layer, so that all are as slow as the slowest.
struct Lockstep {
  std::int64_t ranks = 1;     // number of ranks in such a set
  std::int64_t replicas = 1;  // number of such sets on a stage, each a part of one pipeline
  std::int64_t stages = 1;    // number of stages of a pipeline
};
// gathers: whether ranks that gather sharded weights from each other count as such ranks.
Lockstep lockstep_of(const Plan& plan, bool gathers);

// Ranks that differ in speed, as the classes of a plan. limits: for each class, the slowness that it does not exceed,
// however slow its stage is; in_timing: the slowness, plus 1, that all classes have in `timing`.
struct VariedRanks {
  const Plan& plan;
  const Timing& timing;
  double in_timing = 1;
  std::vector<double> limits;
};

// How a step's time depends on the slowness of a pipeline's stages: a stage of slowness x takes 1 + x times as long for
// what GPUs' clocks limit. A step takes base + passing * (sum of all x) + the largest of pacing[i] * x[i] - spare[i]:
// every stage delays a micro-batch that passes through it once, and the stage that takes longest sets the pace of all;
// one with less to do has time to spare first.
struct StageResponse {
  Seconds base = 0, passing = 0;
  std::vector<Seconds> pacing, spare;
};
// Finds the response by simulating the step with all stages slow, and with one stage slow at a time. `slowness` is
// above what stages have. A stage's pacing is in proportion to its work that clocks limit. Of more than eight stages
// eight are simulated, and those between are taken to lie on a line.
StageResponse stage_response(const VariedRanks& ranks, std::int64_t stages, double slowness,
                             const std::atomic<bool>* stop = nullptr);

// Returns the quantiles of a step over clusters whose GPUs differ as cluster.variation.gpus says. The slowness of a GPU
// is normally distributed, and relative to the slowest of eight, as whose the profile's times are taken
// (slowest_beyond_a_node). A set in lockstep is as slow as its slowest rank, a step as its slowest replica. With one
// stage the quantile is that of the slowest of all ranks; with several, quantiles are taken over draws by the spec's
// seed. With one stage, and where weights are sharded, the other ranks are simulated too, each as slow as its place
// among all says (OutOfStep). Ranks that meet once a step only are also as slow as all their kernels of the step
// together, whose variance is the sum of theirs. spec.cluster.variation must be set, with gpus above 0; `timing` and
// `step` are those of the plan when all GPUs are as slow as the slowest of the job is in the mean.
StepQuantiles step_quantiles(const Spec& spec, const Plan& plan, const Timing& timing, Seconds step,
                             const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
