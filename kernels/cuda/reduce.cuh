#pragma once

#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {

constexpr int kReduceColumns = 32;

// to(columns) += the sum of `parts` rows of partial sums, in a fixed order: eight threads a column take every eighth
// row.
void add_partial_sums(const float* partial, std::int64_t parts, std::int64_t columns, Array to, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
