#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/trace/measured_times.h"

namespace orrery {

// Figures of a single GPU, as the program for GPU ranks reports them: its identity, and times of single kernels.
struct GpuProbe {
  std::vector<std::pair<std::string, std::string>> fingerprint;  // {"device", "NVIDIA H100 80GB HBM3"}, ...
  MeasuredTimes kernels;
  // Text of the file with all measurements, including the algorithm that the library chose for each matrix product.
  std::string text;
};
// Runs the probe, which keeps files in `folder`. Throws Error with that program's own line where there is no GPU.
GpuProbe probe_gpu(const std::string& folder, bool quick);

// The clocks, power and temperature of the GPU as nvidia-smi prints them: "1980 MHz, 2619 MHz, 120.53 W, 35"; "unknown"
// without nvidia-smi.
std::string gpu_clocks();

// Adds samples of sizes that a kind has no samples of yet, and slow-downs that the steps did not show.
void add_samples(MeasuredTimes& times, const MeasuredTimes& more);

}  // namespace orrery
