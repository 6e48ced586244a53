#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/trace/conditions.h"
#include "models/trace/measured_times.h"
#include "sim/runs/rank_session.h"

namespace orrery {

// The figures of a single GPU that orrery-rank-cuda reports: the GPU's identity, and times of single kernels.
struct GpuProbe {
  // properties of the GPU as pairs (name, value): {"device", "NVIDIA H100 80GB HBM3"}, ...
  std::vector<std::pair<std::string, std::string>> fingerprint;
  MeasuredTimes kernels;
  Conditions conditions;  // the GPU's clocks and power while the kernels were measured
  // Text of the file with all measurements, including the algorithm that the library chose for each matrix product.
  std::string text;
};
// Lets the session's process measure the GPU, and keep its files in `folder`. If there is no GPU, throws Error with the
// line that the process has printed. After `patience` seconds the process is killed and Error thrown, since no rank
// watches this measurement, and a kernel may hang.
GpuProbe probe_gpu(RankSession& session, const std::string& folder, bool quick, Seconds patience = 600);

// Adds to `times` those samples of `more` whose kind of op and sizes have no sample in `times`. For the slow-downs of
// compute by host copies, and by sums of received arrays, keeps the larger of the two values.
void add_samples(MeasuredTimes& times, const MeasuredTimes& more);

}  // namespace orrery
