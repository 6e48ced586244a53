#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/products.h"
#include "models/trace/measured_times.h"

namespace orrery::cuda {

// A measured matrix product, and the algorithm that cuBLASLt chose for it.
struct ChosenProduct {
  std::string kind;
  std::int64_t m = 0, n = 0, k = 0;
  Seconds seconds = 0;
  kernels::cuda::Algorithm algorithm;
};

// A measured memcpy between page-locked host memory and the device, or within the device.
struct CopySample {
  std::string kind;  // direction of a copy: "host to device", "device to host", "device to device"
  Bytes bytes = 0;
  Seconds seconds = 0;
};

// Measured times of single kernels and memcpys on the current GPU: the median of a few repetitions after a warm-up. A
// repetition lasts from the end of the previous one to its own end, as the executor times tasks. Inputs are random
// numbers with the deviation of initial weights.
struct GpuBench {
  MeasuredTimes times;  // times of matrix products and attention, as a profile stores them
  std::vector<ChosenProduct> products;
  std::vector<CopySample> copies;
  // time to launch a nearly empty kernel, on the host and on the device, in seconds
  Seconds launch_host = 0, launch_device = 0;
  // Factor by which a matrix product is slower while a copy to the host runs.
  double slowdown_by_copy = 1;
  // Factor by which a matrix product is slower while the device sums arrays, as a collective does.
  double slowdown_by_sum = 1;
  // number of measurements that were not used because their repetitions scattered too much in two attempts
  std::int64_t refused = 0;
};
GpuBench bench_gpu(bool quick);

std::string to_json(const GpuBench& bench);  // the results as JSON with the schema orrery.gpu_bench/1

}  // namespace orrery::cuda
