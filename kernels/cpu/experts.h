#pragma once

#include <cstdint>

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The parameters of a router's choice of experts, as of Gate in op.h. Tokens are divided into `groups` equal runs; each
// run has a separate `capacity` for every expert (0: unlimited).
struct GateShape {
  std::int64_t experts = 0, top_k = 0, capacity = 0, groups = 1;
  bool padded = false, sigmoid = false;
  double aux_loss = 0;
  // The experts of a token are in at most top_groups of the expert_groups groups of experts.
  std::int64_t expert_groups = 1, top_groups = 1;
};

// Results of a router's forward pass. scores (tokens, experts); by token and choice (tokens, top_k): the weight, zero
// if dropped, the chosen expert, and the place among the rows sent to experts, -1 if dropped; counts: rows per expert.
struct Routing {
  float *scores = nullptr, *weights = nullptr;
  std::int32_t *experts = nullptr, *places = nullptr, *counts = nullptr;
};

// Chooses experts. bias: added to scores for choosing only; may be null. Among equal scores the lower expert is chosen.
// Places are ordered by expert, then token; with padding by expert, run of tokens, token.
void choose_experts(Matrix<const float> logits, const GateShape& s, const float* bias, const Routing& r);

// Sets counts[e] to the number of choices that are expert e.
void count_choices(const std::int32_t* chosen, std::int64_t choices, std::int64_t experts, float* counts);

// Computes dlogits from the gradients of the weights and of the auxiliary loss, whose gradient is multiplied by
// `loss_scale` per token. counts: the auxiliary loss is over the tokens of `sharers` ranks, counts[e] of whose choices
// are expert e; null: it is over the tokens here.
void choose_experts_gradient(const Routing& r, const float* dweights, const GateShape& s, float loss_scale,
                             Matrix<float> dlogits, const float* counts = nullptr, std::int64_t sharers = 1);

// Copies every token to the rows of its choices: out(places(t, j)) = x(t); other rows of out become zeros.
void expand_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> out);
// Sums the rows of every token's choices: y(t) = the sum over j, in order, of x(places(t, j)).
void sum_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> y);

// Reorders chunks of rows from (source, expert) to (expert, source), or back. counts (sources, experts): rows of each
// chunk.
void sort_chunks(Matrix<const float> x, const std::int32_t* counts, std::int64_t sources, std::int64_t experts,
                 bool back, Matrix<float> y);

// Multiplies each row by a factor: x(r) *= factors[r]
void scale_rows(const float* factors, Matrix<float> x);
// Computes y[r] = the scalar product of rows a(r) and b(r), summed in double.
void row_products(Matrix<const float> a, Matrix<const float> b, float* y);

}  // namespace orrery::kernels
