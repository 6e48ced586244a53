#pragma once

#include <span>

#include "models/plan/plan.h"
#include "models/trace/trace_file.h"
#include "sim/predict/predict.h"

namespace orrery {

// The plan of all ranks as step k of a run turned out: with the rows that its experts really got, layer by layer and
// micro-batch by micro-batch (with_runtime_sizes). The plan itself where it has no sizes that a run finds out.
Plan plan_of_step(const Plan& unfolded, std::span<const RankRun> runs, std::size_t step);

// What would have been predicted of a run's spec had one known its loads, which are an input of a prediction: a router
// that has learnt little sends its tokens now here, now there, and with a capacity it drops now many, now few.
// prediction: of every rank, as the spec has it. The step is the run's median one; memory, whose peak is over all
// steps, every rank's most in any of them but the first, if that had no moments yet. The prediction itself where
// nothing is counted (no experts, or padded).
Prediction with_measured_loads(const Spec& spec, const Prediction& prediction, std::span<const RankRun> runs);

}  // namespace orrery
