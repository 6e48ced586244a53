#pragma once

#include <optional>

#include "viz/compare.h"
#include "viz/load.h"

namespace orrery {

// What of a prediction's error is the engine's, as `orrery validate` has it: the measured durations of all tasks played
// by the engine (sim/replay.h), over the measured step, minus one. Nothing where `predicted` was not simulated here, or
// `measured` lacks a task of its plan or the times that `orrery run --trace` writes of it.
std::optional<double> replayed_engine_error(const Document& predicted, const Document& measured,
                                            const Matching& matching);

}  // namespace orrery
