#pragma once

#include "kernels/cpu/attention.h"
#include "kernels/cuda/tensor.h"

namespace orrery::kernels::cuda {

// Computes flash attention, as in kernels/cpu/attention.h. bf16 and fp16 run on tensor cores: head_dim must be a
// multiple of 8 up to 256, rows 16-byte aligned; probabilities and their gradients are rounded to 16 bits between the
// products. fp32 runs on plain kernels of one warp per row, for checking rather than for speed. All tensors have one
// type, except lse, which is fp32 (batch, heads, query).
void attention(ConstHeads q, ConstHeads k, ConstHeads v, float scale, const CausalMask& mask, Heads out, float* lse,
               cudaStream_t stream);

struct AttentionSaved {
  ConstHeads q, k, v, out;
  const float* lse = nullptr;
};

// Writes all three gradients. In 16 bits, dq is summed by atomic additions of fp32 in no fixed order, so the low bits
// of dq may change from run to run; dk and dv do not. The workspace holds the sums of dq, 4 bytes for every element of
// q (rows and head_dim rounded up to whole tiles), and 8 bytes for every row of lse. If key heads and tiles are too few
// to fill a GPU, each query head gets its own sums of dk and dv; the workspace then also holds 8 bytes for every
// element of k, times the number of query heads that share a key head.
std::int64_t attention_gradient_workspace(ConstHeads q, ConstHeads k);
void attention_gradient(const AttentionSaved& saved, ConstHeads dout, float scale, const CausalMask& mask, Heads dq,
                        Heads dk, Heads dv, Workspace workspace, cudaStream_t stream);

}  // namespace orrery::kernels::cuda
