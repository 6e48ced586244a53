// Matrix products of the plan.
#pragma once

#include <cstdint>

#include "models/base/units.h"
#include "models/base/weight_format.h"

namespace orrery {

// A matrix product C(m, n) [+]= A(m, k) B(k, n), for each of `batch` pairs of matrices; a bias is added if the op reads
// one. `role` says which product of a layer it is. A linear layer has three: the output y(tokens, out) = x W^T; the
// input gradient dx = dy W; the weight gradient dW(out, in) [+]= dy^T x. Attention has six, batched over every sample
// and head: scores Q K^T, values P V, and in backward dP = dY V^T, dV = P^T dY, dQ = dS K, dK = dS^T Q, where Q, K and
// V lie in one packed buffer of `heads` query heads and `kv_heads` key/value heads.
struct Gemm {
  enum class Role : std::uint8_t {
    output,
    input_gradient,
    weight_gradient,
    scores,
    values,
    probability_gradient,
    value_gradient,
    query_gradient,
    key_gradient
  };
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  Role role = Role::output;
  bool accumulate = false;               // whether the product is added to what C holds, not written over it
  Bytes result_bytes = 2;                // bytes of one element of the product C
  std::int64_t heads = 0, kv_heads = 0;  // for attention's products: numbers of query heads and of key/value heads
  // A linear layer may run in tiles, one after another: this product is number `tile` of `tiles` equal parts of the
  // layer's outputs (columns of y and dy). The input gradients of all tiles are summed, so every tile after the first
  // adds to the result.
  std::int64_t tile = 0, tiles = 1;
  // A product may be split into `pieces` kernels with equally many rows that run at the same time; this is number
  // `piece`.
  std::int64_t pieces = 1, piece = 0;
  // If each rank of the tensor parallel group holds a part of the rows, these values say which rows the product covers.
  // member: the rows of the group member `piece` ranks before this rank. before, behind, others: the rows of all
  // members before this rank, of all members after it, or of both (m is the number of rows for a rank in the middle of
  // the group). runs: every member's rows are cut into `pieces` equal runs, and the product covers run number `piece`
  // of every member.
  enum class Rows : std::uint8_t { all, member, before, behind, others, runs };
  Rows rows = Rows::all;
  // A linear layer may consist of `apart` layers with the same input and a product each, of which every one after the
  // first has `apart_outputs` outputs. The shapes, and the buffers in plans, are those of all of them side by side.
  std::int64_t apart = 1, apart_outputs = 0;
  // the format of the weights that the product reads (of `n` rows and `k` columns), which it dequantises
  WeightFormat weights;
};

}  // namespace orrery
