#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/plan/op.h"

namespace orrery {

// This header has the shapes of ops that `orrery_rank_cuda --bench` measures one by one, in bf16.

constexpr Bytes kBenchWidth = 2;            // number of bytes of an element of the measured tensors
constexpr std::int64_t kBenchRows = 16384;  // greatest number of tokens in a measured product or attention

// Returns the matrix products of linear layers that are measured: outputs and inputs of the weights of known models
// with 1 to 70 billion parameters, including their embedding and output matrices, for four numbers of tokens. Forward,
// input-gradient and weight-gradient products are measured; weight gradients both added to fp32 sums, as most stacks
// do, and written in bf16, as for the units of FSDP and ZeRO. quick: only a few of them.
inline std::vector<Gemm> bench_products(bool quick) {
  using Role = Gemm::Role;
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 14> kMatrices = {{{1024, 1024},
                                                                                {4096, 1024},
                                                                                {1024, 4096},
                                                                                {2048, 2048},
                                                                                {8192, 2048},
                                                                                {2048, 8192},
                                                                                {4096, 4096},
                                                                                {14336, 4096},
                                                                                {4096, 14336},
                                                                                {32000, 4096},
                                                                                {50304, 1280},
                                                                                {128256, 2048},
                                                                                {8192, 8192},
                                                                                {28672, 8192}}};
  std::vector<Gemm> products;
  for (const auto& [out, in] : kMatrices) {
    for (const std::int64_t tokens : {2048, 4096, 8192, 16384}) {
      if (quick ? tokens != 4096 : tokens * out > kBenchRows * 50304) continue;
      products.push_back({.m = tokens, .n = out, .k = in, .role = Role::output, .result_bytes = kBenchWidth});
      products.push_back({.m = tokens, .n = in, .k = out, .role = Role::input_gradient, .result_bytes = kBenchWidth});
      products.push_back(
          {.m = out, .n = in, .k = tokens, .role = Role::weight_gradient, .accumulate = true, .result_bytes = 4});
      products.push_back({.m = out, .n = in, .k = tokens, .role = Role::weight_gradient, .result_bytes = kBenchWidth});
    }
  }
  return products;
}

// Returns the causal attentions that are measured, over one to sixteen sequences of kBenchRows tokens in total, for
// three shapes of heads. The list has the forward ops; the backward of each is measured too. quick: only a few of them.
inline std::vector<FlashAttention> bench_attention(bool quick) {
  std::vector<FlashAttention> all;
  for (const std::int64_t sequence : {1024, 2048, 4096, 8192, 16384}) {
    if (quick && sequence != 8192) continue;
    for (const auto& [heads, kv, dim] : {std::array{16, 16, 128}, std::array{32, 8, 128}, std::array{16, 16, 64}})
      all.push_back({.batch = kBenchRows / sequence,
                     .heads = heads,
                     .kv_heads = kv,
                     .query = sequence,
                     .key = sequence,
                     .head_dim = dim,
                     .value_dim = dim});
  }
  return all;
}

}  // namespace orrery
