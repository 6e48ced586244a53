#pragma once

#include <machine.cuh>

#include "kernels/cuda/elementwise.h"

namespace orrery::kernels::cuda {

// Returns the value of a Factor, which a kernel computes from numbers in device memory; the clip coefficient is that of
// clip_factor() in kernels/cpu/update.h.
__device__ inline double value_of(const Factor& f) {
  double value = f.value;
  if (f.loss_scale != nullptr) value /= static_cast<double>(*f.loss_scale);
  if (f.squared_norm == nullptr) return value;
  const double clip = f.limit / (sqrt(static_cast<double>(*f.squared_norm)) + 1e-6);
  return clip < 1 ? value * clip : value;
}

}  // namespace orrery::kernels::cuda
