#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/softmax.h on a GPU. Both may run in place; types of the two matrices may differ.
void masked_softmax(ConstMatrix scores, std::int64_t queries, const CausalMask& mask, Matrix probabilities,
                    cudaStream_t stream);
void softmax_gradient(ConstMatrix probabilities, Matrix gradient, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
