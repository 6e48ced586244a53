#pragma once

#include "kernels/cpu/rotary.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/embedding.h on a GPU. The types of table and y, and of dy and dtable, may differ.
void embed(const std::int64_t* tokens, std::int64_t first, ConstMatrix table, Matrix y, cudaStream_t stream);

// Rows of dy are grouped by token, then added in rising order, so the result has the same bits every time. Each sum is
// rounded once. vocabulary: number of rows of this rank's table.
std::int64_t embed_gradient_workspace(std::int64_t rows, std::int64_t vocabulary);
void embed_gradient(const std::int64_t* tokens, std::int64_t first, ConstMatrix dy, Matrix dtable, Workspace workspace,
                    cudaStream_t stream);

void add_positions(ConstMatrix x, ConstMatrix table, Positions positions, Matrix y, cudaStream_t stream);
void positions_gradient(ConstMatrix dy, Positions positions, Matrix dtable, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
