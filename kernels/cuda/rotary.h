#pragma once

#include "kernels/cpu/rotary.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// kernels/cpu/rotary.h's table, (positions, half) each, copied to the device by its owner.
struct DeviceRotaryTable {
  std::int64_t half = 0;
  const float* cosine = nullptr;
  const float* sine = nullptr;
};

void rotate(const DeviceRotaryTable& table, Positions positions, bool back, Matrix x, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
