#pragma once

#include <cstddef>

namespace orrery::kernels::cuda {

// A parameter of a kernel as it is passed.
struct KernelParameter {
  const void* at;
  std::size_t bytes;
};

}  // namespace orrery::kernels::cuda

// Hook for tests, called before each launch: the imitation of the CUDA runtime that checks the executor
// (tests/exec/cuda/null_gpu) defines it. With the real CUDA runtime it is undefined and not called.
extern "C" __attribute__((weak)) void orrery_observe_kernel(const void* kernel,
                                                            const orrery::kernels::cuda::KernelParameter* parameters,
                                                            std::size_t count);
