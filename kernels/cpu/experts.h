#pragma once

#include <cstdint>

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The shape of a router's choice, as Gate in op.h: `groups` equal runs of tokens, each with separate capacities (0:
// none).
struct GateShape {
  std::int64_t experts = 0, top_k = 0, capacity = 0, groups = 1;
  bool padded = false, sigmoid = false;
  double aux_loss = 0;
  std::int64_t expert_groups = 1, top_groups = 1;  // a token's experts are in at most top_groups of the expert_groups
};

// Results of forward, by token and choice (tokens, top_k) and by expert: scores (tokens, experts); the weight of each
// choice, zero where dropped; the chosen expert; the choice's place among the rows that are sent, -1 where dropped;
// rows per expert.
struct Routing {
  float *scores = nullptr, *weights = nullptr;
  std::int32_t *experts = nullptr, *places = nullptr, *counts = nullptr;
};

// bias: added to the scores only for choosing; may be null. Among equal scores the lower expert is chosen. Places are
// ordered by expert, then token; with padding by expert, run, token.
void choose_experts(Matrix<const float> logits, const GateShape& s, const float* bias, const Routing& r);

// counts[e] = how many of the choices are expert e.
void count_choices(const std::int32_t* chosen, std::int64_t choices, std::int64_t experts, float* counts);

// Computes dlogits from the gradients of the weights and from the auxiliary loss, whose gradient is multiplied by
// `loss_scale` per token. counts: the auxiliary loss is of the tokens of so many ranks, `sharers`, and counts[e] of
// their choices are expert e; null: the auxiliary loss is of the tokens here.
void choose_experts_gradient(const Routing& r, const float* dweights, const GateShape& s, float loss_scale,
                             Matrix<float> dlogits, const float* counts = nullptr, std::int64_t sharers = 1);

// out(places(t, j)) = x(t) for every choice, zeros elsewhere.
void expand_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> out);
// y(t) = the sum over j, in order, of x(places(t, j)).
void sum_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> y);

// Reorders chunks from (source, expert) to (expert, source), or back. counts (sources, experts): rows of each chunk.
void sort_chunks(Matrix<const float> x, const std::int32_t* counts, std::int64_t sources, std::int64_t experts,
                 bool back, Matrix<float> y);

// x(r) *= factors[r]
void scale_rows(const float* factors, Matrix<float> x);
// y[r] = the product of a(r) and b(r), summed in double.
void row_products(Matrix<const float> a, Matrix<const float> b, float* y);

}  // namespace orrery::kernels
