#pragma once

#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {

constexpr int kReduceColumns = 32;

// Adds to to(columns) the sum of the `parts` rows of partial(parts, columns), in a fixed order: each of eight threads
// per column adds up every eighth row.
void add_partial_sums(const float* partial, std::int64_t parts, std::int64_t columns, Array to, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
