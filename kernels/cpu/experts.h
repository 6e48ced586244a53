#pragma once

#include <cstdint>

#include "kernels/common/matrix.h"

namespace orrery::kernels {

// The parameters of a router's choice of experts, as in Gate (models/plan/op.h). Tokens are divided into `groups` equal
// ranges of consecutive tokens; every expert takes at most `capacity` tokens (0: unlimited) from each range.
struct GateShape {
  std::int64_t experts = 0, top_k = 0, capacity = 0, groups = 1;
  bool padded = false, sigmoid = false;
  double aux_loss = 0;
  // The experts chosen for a token are in at most top_groups of the expert_groups groups of experts.
  std::int64_t expert_groups = 1, top_groups = 1;
};

// The results of a router's forward pass: scores, of shape (tokens, experts), and three arrays with one element per
// token and choice, of shape (tokens, top_k): `weights` (zero if the choice is dropped), the chosen `experts`, and
// `places`, the token's row in the experts' input (-1 if dropped). counts: number of input rows of each expert.
struct Routing {
  float *scores = nullptr, *weights = nullptr;
  std::int32_t *experts = nullptr, *places = nullptr, *counts = nullptr;
};

// Chooses experts. bias: added to scores for choosing only; may be null. Among equal scores the expert with the lower
// number is chosen. Rows of the experts' input (`places`) are ordered by expert, then token; with s.padded, every
// expert has `capacity` rows for each range of tokens.
void choose_experts(Matrix<const float> logits, const GateShape& s, const float* bias, const Routing& r);

// Sets counts[e] to the number of choices of expert e.
void count_choices(const std::int32_t* chosen, std::int64_t choices, std::int64_t experts, float* counts);

// Computes dlogits from the gradients of the weights and of the auxiliary loss, whose gradient is multiplied by
// `loss_scale` per token. counts: the auxiliary loss is over the tokens of `sharers` ranks, which choose expert e
// counts[e] times; null: it is over the tokens of this rank.
void choose_experts_gradient(const Routing& r, const float* dweights, const GateShape& s, float loss_scale,
                             Matrix<float> dlogits, const float* counts = nullptr, std::int64_t sharers = 1);

// Copies every token to the rows of its choices: out(places(t, j)) = x(t); other rows of out become zeros.
void expand_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> out);
// Sums the rows of every token's choices: y(t) = the sum over j, in order, of x(places(t, j)).
void sum_rows(Matrix<const float> x, const std::int32_t* places, std::int64_t copies, Matrix<float> y);

// The same with each row multiplied by the weight of its choice; choices without a row (place -1) are left out.
void sum_weighted_rows(Matrix<const float> x, const std::int32_t* places, const float* weights, std::int64_t copies,
                       Matrix<float> y);

// Reorders chunks of rows from order (source, expert) to (expert, source), or with `back` the other way; source: the
// rank from which a chunk came. counts (sources, experts): number of rows of each chunk.
void sort_chunks(Matrix<const float> x, const std::int32_t* counts, std::int64_t sources, std::int64_t experts,
                 bool back, Matrix<float> y);

// Multiplies each row by a factor: x(r) *= factors[r]
void scale_rows(const float* factors, Matrix<float> x);
// Computes y[r] = the scalar product of rows a(r) and b(r), summed in double.
void row_products(Matrix<const float> a, Matrix<const float> b, float* y);

}  // namespace orrery::kernels
