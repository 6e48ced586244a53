#pragma once

#include <string>
#include <vector>

#include "exec/cuda/sensors.h"
#include "kernels/cuda/products.h"
#include "models/trace/measured_times.h"

namespace orrery::cuda {

// A measured matrix product, and the algorithm that cuBLASLt chose for it.
struct ChosenProduct {
  std::string kind;
  std::int64_t m = 0, n = 0, k = 0;
  Seconds seconds = 0;
  kernels::cuda::Algorithm algorithm;
  double sm_MHz = 0;  // median clock of the multiprocessors during the measurement; 0: not known
};

// A measured memcpy between page-locked host memory and the device, or within the device.
struct CopySample {
  std::string kind;  // direction of a copy: "host to device", "device to host", "device to device"
  Bytes bytes = 0;
  Seconds seconds = 0;
};

// Measured times of single kernels and copies on the current GPU (stopwatch.h). Successive calls take operands from
// different parts of memory, so that no call finds its operands in the L2 cache.
struct GpuBench {
  MeasuredTimes times;  // times of matrix products and attention, in the form in which a GPU's profile stores them
  std::vector<ChosenProduct> products;
  std::vector<CopySample> copies;
  // time to launch a nearly empty kernel, on the host and on the device, in seconds
  Seconds launch_host = 0, launch_device = 0;
  // Factor by which a matrix product takes longer while a copy to the host runs.
  double slowdown_by_copy = 1;
  // Factor by which a matrix product takes longer while another stream sums arrays, as a collective does.
  double slowdown_by_sum = 1;
  std::int64_t refused = 0;  // number of measurements left out because their repetitions differed too much twice
  // largest factor by which the time of a fixed matrix product (the reference), timed before and after each block of
  // measurements, changed over a block
  double drift = 1;
  std::int64_t repeated = 0;  // number of blocks of measurements repeated because the GPU's speed had drifted
  Conditions conditions;      // clocks and power over all measurements
};
GpuBench bench_gpu(bool quick, Sensors& sensors);

// Returns JSON with the schema orrery.gpu_bench/1. fingerprint: the GPU's name and versions (device.h).
std::string to_json(const GpuBench& bench, const std::vector<std::pair<std::string, std::string>>& fingerprint);

}  // namespace orrery::cuda
