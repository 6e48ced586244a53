#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/trace/conditions.h"
#include "models/trace/measured_times.h"
#include "sim/runs/rank_session.h"

namespace orrery {

// Figures of a single GPU, as the program for GPU ranks reports them: its identity, and times of single kernels.
struct GpuProbe {
  std::vector<std::pair<std::string, std::string>> fingerprint;  // {"device", "NVIDIA H100 80GB HBM3"}, ...
  MeasuredTimes kernels;
  Conditions conditions;  // clocks and power while they were measured
  // Text of the file with all measurements, including the algorithm that the library chose for each matrix product.
  std::string text;
};
// Lets the session's process measure, which keeps files in `folder`. Throws Error with that program's own line where
// there is no GPU, and after `patience`, when the process is ended: kernels that hang are in no rank that is watched.
GpuProbe probe_gpu(RankSession& session, const std::string& folder, bool quick, Seconds patience = 600);

// Adds samples of sizes that a kind has no samples of yet, and slow-downs that the steps did not show.
void add_samples(MeasuredTimes& times, const MeasuredTimes& more);

}  // namespace orrery
