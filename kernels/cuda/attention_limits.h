#pragma once

#include <cstdint>

// These limits are separate from attention.h, for programs built without a CUDA toolkit.
namespace orrery::kernels::cuda {

constexpr std::int64_t kMostHeadDim = 256;

// Whether flash attention on a GPU takes heads of this size: packs of 8 elements in 16 bits; warps over them in fp32.
constexpr bool takes_head_dim(std::int64_t head_dim, bool sixteen_bits) {
  return head_dim <= kMostHeadDim && (head_dim % 8 == 0 || !sixteen_bits);
}

}  // namespace orrery::kernels::cuda
