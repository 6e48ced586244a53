#pragma once

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// CPU kernels of layers with a recurrence (state-space models, gated delta net). Each works on the tokens of one
// sample, in their order. Gradients of weights are added to the values already in their buffers.

// A causal convolution over the tokens, for each column: y[token, column] = SiLU(bias[column] + sum over j < taps of
// weight[column, j] x[token - taps + 1 + j, column]), where tokens before the sample are zero. bias: null for none. The
// backward pass writes dx; dbias is null without a bias.
struct ConvolutionWeights {
  const float *weight = nullptr, *bias = nullptr;  // shapes: weight (columns, taps), bias (columns)
  std::int64_t taps = 0;
};
void convolve(Matrix<const float> x, ConvolutionWeights w, Matrix<float> y);
void convolve_gradient(Matrix<const float> x, ConvolutionWeights w, Matrix<const float> dy, Matrix<float> dx,
                       float* dweight, float* dbias);

// The shape of a recurrence. A row of its input holds one token: the queries q and keys k of `groups` heads, and the
// values v of `heads` heads. Each head has a state S (key_dim, value_dim). With decay a and step b, a token turns S
// into a S + b k (v - k^T a S)^T, or without `corrects` into a S + b k v^T. The token's result is q^T S, plus d v if
// the head has a learned skip d. With unit_keys, q and k are scaled to length one, and results are divided by
// sqrt(key_dim).
struct RecurrenceShape {
  std::int64_t heads = 0, groups = 0, key_dim = 0, value_dim = 0;
  bool corrects = false, unit_keys = false;
};
// The gates of a recurrence, each (tokens, heads). A number w of `decay` gives the decay exp(-exp(weight) softplus(w +
// bias)), with weight and bias of the head from RecurrenceWeights. The step is the sigmoid of the number in `step` or,
// if step.data is null, softplus(w + bias).
struct RecurrenceGates {
  Matrix<const float> decay, step;  // the two gates, each of shape (tokens, heads)
};
struct RecurrenceWeights {
  const float *decay = nullptr, *bias = nullptr, *skip = nullptr;  // one number for each head; skip may be null
};
// states: the state of each head before the first token, (heads, key_dim, value_dim), which becomes that after the last
// one; null: the states are zero before, and forgotten.
void scan(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w, Matrix<float> y,
          float* states = nullptr);

// The gradients that scan_gradient() computes. It computes the states again, one chunk of tokens after the other.
struct RecurrenceGradients {
  // scan_gradient() overwrites the gradients x, decay_gate and step_gate, and adds to the gradients decay, bias and
  // skip.
  Matrix<float> x, decay_gate, step_gate;
  float *decay = nullptr, *bias = nullptr, *skip = nullptr;
};
void scan_gradient(const RecurrenceShape& s, Matrix<const float> x, RecurrenceGates gates, RecurrenceWeights w,
                   Matrix<const float> dy, const RecurrenceGradients& d);

// RMS norm with a gate, of each group of `width` consecutive columns of a row: y = weight norm(x) SiLU(gate), or with
// gates_first y = weight norm(x SiLU(gate)). shared: all groups use the same `width` weights; else each column of the
// row has a weight. The forward pass saves the reciprocal deviation of each group, (rows, columns / width).
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
