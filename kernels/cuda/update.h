#pragma once

#include "kernels/cpu/update.h"
#include "kernels/cuda/elementwise.h"

namespace orrery::kernels::cuda {

// The optimizer step of kernels/cpu/update.h in one pass. The gradient is multiplied by step.gradient_factor and by
// `factor`, which is read on the device. forward: receives the weights that the next forward pass reads; forward.data
// may be null. If weights are not fp32, there are no master weights: the weights are read and written as stored.
void update(const UpdateRule& rule, UpdateStep step, Factor factor, std::int64_t n, ConstArray gradient, Array weights,
            float* moment1, float* moment2, Array forward, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
