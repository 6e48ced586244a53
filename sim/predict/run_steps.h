#pragma once

#include <atomic>

#include "models/spec/spec.h"
#include "sim/predict/predict.h"

namespace orrery {

// Two steps of a simulated run: the first, which begins on idle devices, and a later one, before which the host has
// issued work ahead and some ranks may have begun while others still end the step before. Both are of the same plan of
// one step; times are from the begin of each, memory and remarks those of the prediction. period: time from the end of
// the step before the later one to its end, which is the step time of the later one's report.
struct RunSteps {
  Prediction first, steady;
  Picoseconds period = 0;
};

// Simulates a run of a few steps of a predicted training step, each of whose ranks begins a step when it has ended the
// step before. Throws Error for asynchronous schedules and workers, whose predictions show several steps already, and
// for generated text, which has no steps.
RunSteps steps_of_run(const Spec& spec, const Prediction& one, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
