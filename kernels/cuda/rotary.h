#pragma once

#include "kernels/cpu/rotary.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The tables of kernels/cpu/rotary.h in device memory, each (positions, half); the caller owns and fills the memory.
struct DeviceRotaryTable {
  std::int64_t half = 0;
  const float* cosine = nullptr;
  const float* sine = nullptr;
};

void rotate(const DeviceRotaryTable& table, Positions positions, bool back, Matrix x, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
