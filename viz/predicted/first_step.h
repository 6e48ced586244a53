#pragma once

#include <atomic>
#include <utility>

#include "viz/predicted/step.h"

namespace orrery {

// Returns the first step of a run and a later, steady one (sim/predict/run_steps.h), as steps of their own: with the
// memory of the first step, in which states are allocated, and that of the later one. Throws Error for a step that has
// no later one, Stopped (sim/engine/simulate.h) soon after `stop` is set.
std::pair<StepTimeline, StepTimeline> first_and_steady(const Step& step, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
