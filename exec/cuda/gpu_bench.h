#pragma once

#include <string>
#include <vector>

#include "kernels/cuda/products.h"
#include "models/trace/measured_times.h"

namespace orrery::cuda {

// A matrix product, and the kernel that the library chose for it.
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
  Seconds launch_host = 0, launch_device = 0;  // time to launch a nearly empty kernel, on the host and on the device
  double slowdown_by_copy = 1;                 // slowdown of a product while a copy to the host runs
  double slowdown_by_sum = 1;  // slowdown of a product while the device adds up arrays, as a collective does
  std::int64_t refused = 0;    // samples left out because they scattered too much in both tries
};
GpuBench bench_gpu(bool quick);

std::string to_json(const GpuBench& bench);  // schema orrery.gpu_bench/1

}  // namespace orrery::cuda
