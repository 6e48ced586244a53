#pragma once

#include <atomic>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The report that predict() gives, without its plan and trace. A step of many micro-batches whose schedule repeats is
// derived from three shorter steps: if each added period lasts as long as the one before to the picosecond, moves as
// many bytes and needs no more memory, the remaining micro-batches are taken to repeat that period. Any other step is
// simulated completely. Tests compare both ways to the picosecond; they would miss a host that falls behind its device
// by too little to show in three periods. Throws what predict() throws.
Report predict_report(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
