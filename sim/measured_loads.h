#pragma once

#include <span>

#include "models/plan.h"
#include "models/trace_file.h"
#include "sim/predict.h"

namespace orrery {

// How unevenly a run's tokens went to the ranks that hold experts, as moe.imbalance counts it: busiest rank over mean.
struct MeasuredLoads {
  double step = 1;    // of the median step, layer by layer, each with its own busiest rank: what its time follows
  double memory = 1;  // of the rank and step that got most in all layers together: what memory's peak follows
};

// unfolded: the plan of all ranks. 1 where no tokens are counted (no experts, or padded).
MeasuredLoads measured_loads(const Plan& unfolded, std::span<const RankRun> runs);

// What would have been predicted of a run's spec had one known its loads, which are an input of a prediction: a router
// that has learnt little sends its tokens now here, now there. prediction: of every rank, as the spec has it. Steps are
// those of the median step; memory, whose peak is over all steps, that of the busiest rank on every rank of its stage.
// The prediction itself where nothing is uneven, and under context parallelism, whose plans take no uneven loads.
Prediction with_measured_loads(const Spec& spec, const Prediction& prediction, std::span<const RankRun> runs,
                               const std::string& profile);

}  // namespace orrery
