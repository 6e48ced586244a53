#pragma once

#include "kernels/cuda/attention.h"

// This header has the parts of attention.h that are compiled separately, in one file for each depth to which head_dim
// is rounded up.
namespace orrery::kernels::cuda {

constexpr float kLog2E = 1.44269504F;  // log2(e)

struct ForwardArguments {
  ConstHeads q, k, v;
  float scale;
  CausalMask mask;
  Heads out;
  float* lse;
};

// The arguments of the backward pass. dq_sums: the sums of dq in fp32, as tiles whose elements are in the order in
// which threads add to them. statistics: (batch, heads, query) logs to base 2 of the sums of exponentials, then equally
// many dot products of the rows of dout and out. partial_keys: if query heads that share a key head are summed
// separately, the gradients of keys, then of values, from each of these query heads, (query head of the group, batch,
// key, kv_heads, head_dim) in fp32; else null.
struct BackwardArguments {
  AttentionSaved saved;
  ConstHeads dout;
  float scale;
  CausalMask mask;
  Heads dq, dk, dv;
  float *dq_sums, *statistics, *partial_keys;
};

// These functions run flash attention in 16-bit types. The number in a name is the depth to which head_dim is rounded
// up.
void attention_64(const ForwardArguments& arguments, cudaStream_t stream);
void attention_96(const ForwardArguments& arguments, cudaStream_t stream);
void attention_128(const ForwardArguments& arguments, cudaStream_t stream);
void attention_256(const ForwardArguments& arguments, cudaStream_t stream);
void attention_gradient_64(const BackwardArguments& arguments, cudaStream_t stream);
void attention_gradient_96(const BackwardArguments& arguments, cudaStream_t stream);
void attention_gradient_128(const BackwardArguments& arguments, cudaStream_t stream);
void attention_gradient_256(const BackwardArguments& arguments, cudaStream_t stream);

// These functions run attention in fp32; one warp computes a row of queries or keys.
void attention_plain(const ForwardArguments& arguments, cudaStream_t stream);
void attention_gradient_plain(const BackwardArguments& arguments, cudaStream_t stream);

// For each size of heads (depth: head_dim, rounded up), the numbers of queries and of keys in the tile that a thread
// block handles in the backward pass.
struct BackwardExtent {
  int depth, queries, keys;
};
constexpr BackwardExtent kBackwardExtents[] = {{64, 128, 128}, {96, 64, 128}, {128, 64, 128}, {256, 64, 64}};
constexpr BackwardExtent backward_extent(std::int64_t head_dim) {
  for (const BackwardExtent& e : kBackwardExtents) {
    if (head_dim <= e.depth) return e;
  }
  return kBackwardExtents[3];
}

}  // namespace orrery::kernels::cuda
