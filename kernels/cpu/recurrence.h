#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The parts of a layer with a recurrence, each on the tokens of one sample, in their order. Gradients of weights are
// added to.

// y = SiLU(bias + sum over j of weight[column, j] x[token - taps + 1 + j, column]); tokens before the sample are zero.
// bias: null for none. Backward writes dx; dbias is null without a bias.
struct ConvolutionWeights {
  const float *weight = nullptr, *bias = nullptr;  // (columns, taps), (columns)
  std::int64_t taps = 0;
};
void convolve(Matrix<const float> x, ConvolutionWeights w, Matrix<float> y);
void convolve_gradient(Matrix<const float> x, ConvolutionWeights w, Matrix<const float> dy, Matrix<float> dx,
                       float* dweight, float* dbias);

// The shape of a recurrence. A row of its input has the queries and keys of `groups` heads and the values of `heads`
// heads. The state S (key_dim, value_dim) of a head becomes a S + b k (v - k^T a S)^T, or without `corrects` a S + b k
// v^T, and the result is q^T S, or with a skip d that plus d v. With unit_keys queries and keys have length one, and
// results are divided by sqrt(key_dim).
struct RecurrenceShape {
  std::int64_t heads = 0, groups = 0, key_dim = 0, value_dim = 0;
  bool corrects = false, unit_keys = false;
};
// Decays a = exp(-exp(decay) softplus(w + bias)), with one w for each token and head. Steps b are the sigmoids of
// numbers of their own, or where there are none (data null) the softplus of w + bias.
struct RecurrenceGates {
  Matrix<const float> decay, step;  // (tokens, heads)
};
struct RecurrenceWeights {
  const float *decay = nullptr, *bias = nullptr, *skip = nullptr;  // a number for each head; skip null for none
};
void scan(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w, Matrix<float> y);

// Backward computes the states again, chunk by chunk.
struct RecurrenceGradients {
  Matrix<float> x, decay_gate, step_gate;  // written
  float *decay = nullptr, *bias = nullptr, *skip = nullptr;
};
void scan_gradient(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w,
                   Matrix<const float> dy, const RecurrenceGradients& d);

// RMS norm of each run of `width` columns with a gate: y = weight norm(x) SiLU(gate), or with gates_first y = weight
// norm(x SiLU(gate)). shared: runs share `width` weights; else each column has one. Forward saves each run's reciprocal
// deviation (rows, columns / width).
struct GatedNormShape {
  std::int64_t width = 0;
  bool gates_first = false, shared = true;
  float epsilon = 0;
};
void gated_norm(const GatedNormShape& s, Matrix<const float> x, Matrix<const float> gate, const float* weight,
                Matrix<float> y, float* reciprocal);
void gated_norm_gradient(const GatedNormShape& s, Matrix<const float> x, Matrix<const float> gate, const float* weight,
                         const float* reciprocal, Matrix<const float> dy, Matrix<float> dx, Matrix<float> dgate,
                         float* dweight);

}  // namespace orrery::kernels
