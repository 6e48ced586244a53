#pragma once

#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// The functions of kernels/cpu/norm.h on a GPU, for every head of a view at once: statistics are (heads, batch * rows),
// and all heads share one weight. A plain matrix is a view with one head. x, y, dy and dx have the same type; weight,
// bias and their gradients may have any type.
struct NormStatistics {
  float* reciprocal = nullptr;
  float* mean = nullptr;  // mean of each row; null for RMS norm
};

void rms_norm(ConstHeads x, ConstArray weight, float epsilon, Heads y, NormStatistics saved, cudaStream_t stream);
void layer_norm(ConstHeads x, ConstArray weight, ConstArray bias, float epsilon, Heads y, NormStatistics saved,
                cudaStream_t stream);

// The backward functions write dx, which may be dy. Gradients of weight and bias are summed in two passes, in a fixed
// order. rows: number of rows of all heads, batch * rows * heads.
std::int64_t norm_gradient_workspace(std::int64_t rows, std::int64_t columns);
void rms_norm_gradient(ConstHeads x, NormStatistics saved, ConstHeads dy, ConstArray weight, Heads dx, Array dweight,
                       Workspace workspace, cudaStream_t stream);
void layer_norm_gradient(ConstHeads x, NormStatistics saved, ConstHeads dy, ConstArray weight, Heads dx, Array dweight,
                         Array dbias, Workspace workspace, cudaStream_t stream);

template <class Void>
BasicHeads<Void> one_head(BasicMatrix<Void> m) {
  return {m.data, m.type, 1, m.rows, 1, m.columns, m.stride};
}

}  // namespace orrery::kernels::cuda
