#pragma once

#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {

constexpr int kReduceColumns = 32;

// to(columns) += the sum of `parts` rows of partial sums, in a fixed order: each of eight threads per column adds up
// every eighth row.
void add_partial_sums(const float* partial, std::int64_t parts, std::int64_t columns, Array to, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
