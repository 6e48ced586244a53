#pragma once

#include <cstdint>

// The limits of flash attention's head_dim are in a header of their own, apart from attention.h, so that programs built
// without a CUDA toolkit can use them.
namespace orrery::kernels::cuda {

constexpr std::int64_t kMostHeadDim = 256;

// Returns whether flash attention on a GPU supports heads of this size; 16-bit types need a multiple of 8 elements.
constexpr bool takes_head_dim(std::int64_t head_dim, bool sixteen_bits) {
  return head_dim <= kMostHeadDim && (head_dim % 8 == 0 || !sixteen_bits);
}

}  // namespace orrery::kernels::cuda
