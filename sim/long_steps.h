#pragma once

#include <atomic>

#include "models/profile.h"
#include "models/spec.h"
#include "sim/report.h"

namespace orrery {

// The report of predict() alone. A step of many micro-batches whose schedule repeats itself is found from three short
// ones: where each further period lasts as long as the one before it to the picosecond, moves as many bytes and needs
// no more memory, what is left of the step is that period so often. Any other step is simulated whole, so that the
// report is the same as predict()'s but for the rounding of sums. Throws what predict() does.
Report predict_report(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
