#pragma once

#include <span>

#include "models/plan/plan.h"
#include "models/trace/trace_file.h"
#include "sim/predict/predict.h"

namespace orrery {

// The plan of all ranks for step k of a run, with the numbers of tokens (rows) that experts really got, for each layer
// and micro-batch (with_runtime_sizes). Returns `unfolded` itself if no sizes depend on the run.
Plan plan_of_step(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step);

// The prediction as it would have been if the loads of experts in the run, which are an input of predictions, had been
// known beforehand: a router that has learnt little sends its tokens to other experts in every step and, where experts
// have a capacity, drops a different number of tokens. prediction: the prediction of every rank for the spec. The time
// is predicted for the run's median step; the memory of a rank is its largest predicted peak over all steps, without
// the first step where that peak includes optimizer moments. Returns `prediction` itself where no loads are counted (no
// experts, or padded ones).
Prediction with_measured_loads(const Spec& spec, const Prediction& prediction, std::span<const RankRun> runs);

}  // namespace orrery
