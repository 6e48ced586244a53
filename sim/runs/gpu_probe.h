#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/trace/measured_times.h"

namespace orrery {

// Figures of a single GPU, as orrery-rank-cuda reports them: the GPU's identity, and times of single kernels.
struct GpuProbe {
  // properties of the GPU as pairs (name, value): {"device", "NVIDIA H100 80GB HBM3"}, ...
  std::vector<std::pair<std::string, std::string>> fingerprint;
  MeasuredTimes kernels;
  // Text of the file with all measurements, including the algorithm that the library chose for each matrix product.
  std::string text;
};
// Runs orrery-rank-cuda to get these figures; its files stay in `folder`. Throws Error with the line that this program
// printed where there is no GPU.
GpuProbe probe_gpu(const std::string& folder, bool quick);

// The clocks, power and temperature of the GPU as nvidia-smi prints them: "1980 MHz, 2619 MHz, 120.53 W, 35"; "unknown"
// without nvidia-smi.
std::string gpu_clocks();

// Adds to `times` those samples of `more` whose kind of op has no sample of the same sizes in `times`, and raises the
// slow-down of compute by host copies to that of `more` if it is larger.
void add_samples(MeasuredTimes& times, const MeasuredTimes& more);

}  // namespace orrery
