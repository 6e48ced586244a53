#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/products.h"
#include "models/trace/measured_times.h"

namespace orrery::cuda {

// A product as the library carries it out.
struct ChosenProduct {
  std::string kind;
  std::int64_t m = 0, n = 0, k = 0;
  Seconds seconds = 0;
  kernels::cuda::Algorithm algorithm;
};

// Bytes between host (page-locked) and device, or on the device.
struct CopySample {
  std::string kind;  // "host to device", "device to host", "device to device"
  Bytes bytes = 0;
  Seconds seconds = 0;
};

// Single kernels and copies on the current GPU, each a few times after warming up, the median taken; from the end of
// one to the end of the next, as the executor marks its tasks. Inputs are random numbers of weights' spread.
struct GpuBench {
  MeasuredTimes times;  // products and attention, as a profile has them
  std::vector<ChosenProduct> products;
  std::vector<CopySample> copies;
  Seconds launch_host = 0, launch_device = 0;  // of a kernel that does nothing to speak of
  double slowdown_by_copy = 1;                 // of a product while bytes go to the host
  double slowdown_by_sum = 1;                  // of a product while sums on the device go on, as a collective's do
  std::int64_t refused = 0;                    // samples that scattered too much, twice
};
GpuBench bench_gpu(bool quick);

std::string to_json(const GpuBench& bench);  // schema orrery.gpu_bench/1

}  // namespace orrery::cuda
