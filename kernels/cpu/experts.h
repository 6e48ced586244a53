#pragma once

#include <cstdint>

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// A router's choice. As op.h's Gate says: `groups` equal runs of tokens, each with its own capacities (0: none) and its
// own auxiliary loss.
struct GateShape {
  std::int64_t experts = 0, top_k = 0, capacity = 0, groups = 1;
  bool padded = false, sigmoid = false;
  double aux_loss = 0;
  std::int64_t expert_groups = 1, top_groups = 1;  // a token's experts are in so many of those groups
};

// What forward leaves, by token and choice (tokens, top_k), and by expert: scores (tokens, experts); the weight of each
// choice, zero where dropped; its expert; its place among the rows that are sent, -1 where dropped; rows per expert.
struct Routing {
  float *scores = nullptr, *weights = nullptr;
  std::int32_t *experts = nullptr, *places = nullptr, *counts = nullptr;
};

// bias: added to the scores for the choice alone; may be null. Of equal ones the lower expert is chosen. Places go by
// expert, within it by token; padded ones by expert, run, token.
void choose_experts(Matrix<const float> logits, const GateShape& s, const float* bias, const Routing& r);

// dlogits from the gradients of the weights, and that of the auxiliary loss times `loss_scale` per token.
void choose_experts_gradient(const Routing& r, const float* dweights, const GateShape& s, float loss_scale,
                             Matrix<float> dlogits);

// out(places(t, j)) = x(t) for every choice, zeros elsewhere.
void expand_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> out);
// y(t) = the sum over j, in order, of x(places(t, j)).
void sum_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> y);

// Chunks by (source, expert) in the order (expert, source), or back. counts (sources, experts): rows of each.
void sort_chunks(Matrix<const float> x, const std::int32_t* counts, std::int64_t sources, std::int64_t experts,
                 bool back, Matrix<float> y);

// x(r) *= factors[r]
void scale_rows(const float* factors, Matrix<float> x);
// y[r] = the product of a(r) and b(r), summed in double.
void row_products(Matrix<const float> a, Matrix<const float> b, float* y);

}  // namespace orrery::kernels
