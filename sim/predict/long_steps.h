#pragma once

#include <atomic>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The report of predict() without the rest. A step of many micro-batches whose schedule repeats is derived from three
// short steps: if each further period lasts as long as the one before to the picosecond, moves as many bytes and needs
// no more memory, the rest of the step is taken to consist of such periods. Any other step is simulated whole. Tests
// compare both to the picosecond; they would miss a host that falls behind its device by too little to show in three
// periods. Throws what predict() throws.
Report predict_report(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
