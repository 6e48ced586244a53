#pragma once

#include <atomic>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/report/report.h"

namespace orrery {

// The report that predict() gives, without plan and trace. If a step has many micro-batches and its schedule repeats,
// the report is derived from three shorter steps, each one period (some micro-batches) longer than the one before. If
// each added period takes as long as the previous one, moves as many bytes and needs no more memory, the remaining
// micro-batches are assumed to repeat that period. Any other step is simulated completely. Tests compare both ways to
// the picosecond; they would miss a host that falls behind its device by too little to show in three periods. Throws
// what predict() throws.
Report predict_report(const Spec& spec, const Profile& profile, const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
