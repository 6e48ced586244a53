#pragma once

#include <atomic>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The report of predict() alone. A step of many micro-batches whose schedule repeats itself is found from three short
// ones: where each further period lasts as long as the one before it to the picosecond, moves as many bytes and needs
// no more memory, what is left of the step is taken to be that period so often. Any other step is simulated whole.
// Tests hold both against each other to the picosecond; a host that falls behind its device by less in three periods
// than shows would escape them. Throws what predict() does.
Report predict_report(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
