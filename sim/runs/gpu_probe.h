#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/trace/conditions.h"
#include "models/trace/measured_times.h"
#include "sim/runs/rank_session.h"

namespace orrery {

// Figures of a single GPU, as orrery-rank-cuda reports them: the GPU's identity, and times of single kernels.
struct GpuProbe {
  // properties of the GPU as pairs (name, value): {"device", "NVIDIA H100 80GB HBM3"}, ...
  std::vector<std::pair<std::string, std::string>> fingerprint;
  MeasuredTimes kernels;
  Conditions conditions;  // clocks and power while they were measured
  // Text of the file with all measurements, including the algorithm that the library chose for each matrix product.
  std::string text;
};
// Lets the session's process measure, which keeps files in `folder`. Throws Error with that program's own line where
// there is no GPU, and after `patience`, when the process is ended: kernels that hang are in no rank that is watched.
GpuProbe probe_gpu(RankSession& session, const std::string& folder, bool quick, Seconds patience = 600);

// Adds to `times` those samples of `more` whose kind of op has no sample of the same sizes in `times`, and raises the
// slow-down of compute by host copies to that of `more` if it is larger.
void add_samples(MeasuredTimes& times, const MeasuredTimes& more);

}  // namespace orrery
