#pragma once

#include <span>

#include "models/plan/plan.h"
#include "models/trace/trace_file.h"
#include "sim/predict/predict.h"

namespace orrery {

// The plan of all ranks as step k of a run turned out: with the rows that the experts really got, layer by layer and
// micro-batch by micro-batch (with_runtime_sizes). Returns the plan itself if it has no sizes that only a run can tell.
Plan plan_of_step(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step);

// The prediction of a run's spec that would have been made if the loads of the run, which are an input of a prediction,
// had been known: a router that has learnt little sends its tokens now here, now there, and with a capacity it drops
// now many, now few. prediction: the prediction of every rank for the spec. The step is the run's median step; memory,
// a peak over all steps, is every rank's largest in any step but the first, if the first had no moments yet. Returns
// `prediction` itself where nothing is counted (no experts, or padded).
Prediction with_measured_loads(const Spec& spec, const Prediction& prediction, std::span<const RankRun> runs);

}  // namespace orrery
