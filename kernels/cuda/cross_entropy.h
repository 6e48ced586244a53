#pragma once

#include "kernels/cpu/cross_entropy.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/cross_entropy.h on a GPU. Logits may have any type; exponentials of 16-bit logits are
// rounded to 16 bits, but their sums are not.
void row_maxima(ConstMatrix logits, VocabularyPart part, float* maxima, cudaStream_t stream);
void row_exponents(Matrix logits, VocabularyPart part, const float* maxima, const std::int64_t* labels, float* sums,
                   float* label_logits, cudaStream_t stream);
void row_losses(std::int64_t rows, const float* sums, const float* label_logits, float* losses, cudaStream_t stream);
void rescale_rows(std::int64_t rows, std::int64_t columns, VocabularyPart part, const float* maxima,
                  const std::int64_t* labels, float* sums, float* label_logits, float* factors, cudaStream_t stream);
void cross_entropy_gradient(Matrix exponents, VocabularyPart part, const float* sums, const std::int64_t* labels,
                            float scale, const float* factors, cudaStream_t stream);
void combine_gradient(ConstMatrix product, ConstMatrix label_rows, const float* sums, const float* factors, float scale,
                      Matrix gradient, cudaStream_t stream);

// Computes the sum of n losses and adds it to *total.
void add_sum(std::int64_t n, const float* losses, double* total, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
