#pragma once

#include "kernels/cpu/residual.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/residual.h on a GPU, with the same random numbers: masks are equal bit for bit.
void dropout_mask(const Dropout& dropout, std::int64_t rows, std::int64_t columns, std::uint8_t* mask,
                  cudaStream_t stream);

// The biases that are added to x: at most two, of any types. base, x and y have the same type. y may be x or base.
struct Biases {
  ConstArray first = {}, second = {};  // biases added to x; null data: no bias
};
void residual(ConstMatrix base, ConstMatrix x, Biases biases, double probability, const std::uint8_t* mask, Matrix y,
              cudaStream_t stream);

// Does the work of dropout_mask() and residual() in one pass: draws the mask, writes it, and applies it.
void residual_drawing(ConstMatrix base, ConstMatrix x, Biases biases, const Dropout& dropout, std::uint8_t* mask,
                      Matrix y, cudaStream_t stream);

void dropout_gradient(ConstMatrix dy, double probability, const std::uint8_t* mask, Matrix dx, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
