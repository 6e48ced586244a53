#pragma once

#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/activation.h on a GPU: x and y, dy and dx have the same type; bias has any type (null
// data for none). dx may be x.
void swiglu(ConstMatrix x, Matrix y, float limit, cudaStream_t stream);
void swiglu_gradient(ConstMatrix x, ConstMatrix dy, Matrix dx, float limit, cudaStream_t stream);
void gelu(ConstMatrix x, ConstArray bias, Matrix y, cudaStream_t stream);
void gelu_gradient(ConstMatrix x, ConstArray bias, ConstMatrix dy, Matrix dx, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
