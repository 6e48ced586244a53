#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include "kernels/cuda/check.h"

#define __launch_bounds__(...)

// A GPU as far as the kernels of kernels/cuda can tell, on the host: the same names as kernels/cuda/gpu/machine.cuh.
// Every thread of a block is a fiber with its own stack; they take turns, one at a time, and hand over where a kernel
// waits for its warp or block. Blocks run one after another. Matrix instructions gather and spread their fragments as
// the tables of the PTX ISA manual 9.0 say (9.7.14.5.8 and 9.7.14.5.15). It never models time.
namespace orrery::kernels::cuda {

namespace emulated {

// Orders of execution that may differ between runs without changing the results of a correct kernel.
struct Order {
  bool late_copies = false;  // asynchronous copies happen when they are waited for, not at once
  bool reversed = false;     // warps take their turns last first
};
Order& order();

// Counts of slow accesses since the last reset.
struct Findings {
  long matrix_loads = 0, conflicts = 0;  // phases of ldmatrix, and the phases whose rows share banks
};
Findings& findings();

void run(dim3 grid, unsigned block, std::int64_t shared_bytes, const std::function<void()>& kernel);
// asserts that the bytes lie inside the block's memory
unsigned char* block_memory(std::uint32_t address, std::uint32_t bytes);
void copy(std::uint32_t to, const void* from, bool valid);
void commit();
void wait(int pending);
// Every lane passes `bytes` bytes at `value`; returns the values of all lanes, 64 bytes apart.
const unsigned char* exchange(const void* value, std::size_t bytes);
void sync_block();
unsigned lane();

template <class T>
T of_lane(const unsigned char* all, unsigned from) {
  T value;
  std::memcpy(&value, all + std::size_t{64} * from, sizeof(T));
  return value;
}

void note_matrix_loads(const unsigned char* addresses);

}  // namespace emulated

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

template <class... Parameters, class... Arguments>
void launch(const char*, void (*kernel)(Parameters...), dim3 grid, unsigned block, std::int64_t shared_bytes,
            cudaStream_t, const Arguments&... arguments) {
  emulated::run(grid, block, shared_bytes, [&] { kernel(arguments...); });
}

unsigned char* shared_memory();
std::uint32_t shared_address(const void* pointer);

inline void sync_block() { emulated::sync_block(); }
inline void sync_warp() { emulated::exchange("", 1); }
template <class T>
T shuffle_xor(T value, int mask) {
  return emulated::of_lane<T>(emulated::exchange(&value, sizeof(T)), emulated::lane() ^ static_cast<unsigned>(mask));
}

struct Bf16Bits {
  std::uint16_t bits;
};
struct Fp16Bits {
  std::uint16_t bits;
};
inline float widen(float x) { return x; }
inline float widen(Bf16Bits x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
inline float widen(Fp16Bits x) { return __half2float(__half_raw{x.bits}); }
inline void narrow(float x, float& to) { to = x; }
inline void narrow(float x, Bf16Bits& to) { to.bits = static_cast<__nv_bfloat16_raw>(__float2bfloat16_rn(x)).x; }
inline void narrow(float x, Fp16Bits& to) { to.bits = static_cast<__half_raw>(__float2half_rn(x)).x; }

template <class T>
std::uint32_t pack(float low, float high) {
  T a, b;
  narrow(low, a);
  narrow(high, b);
  return a.bits | static_cast<std::uint32_t>(b.bits) << 16;
}
template <class T>
float unpacked(std::uint32_t word, unsigned half) {
  return widen(T{static_cast<std::uint16_t>(word >> (16 * half))});
}

inline float exp2_fast(float x) { return std::exp2(x); }
inline float __uint_as_float(std::uint32_t x) { return std::bit_cast<float>(x); }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }

inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  const unsigned char* all = emulated::exchange(&address, sizeof address);
  emulated::note_matrix_loads(all);
  const unsigned l = emulated::lane();
  for (unsigned m = 0; m < 4; ++m) {
    const auto row = emulated::of_lane<std::uint32_t>(all, 8 * m + l / 4);
    std::memcpy(&r[m], emulated::block_memory(row, 16) + 4 * (l % 4), 4);
  }
  sync_warp();
}
inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  const unsigned char* all = emulated::exchange(&address, sizeof address);
  emulated::note_matrix_loads(all);
  const unsigned l = emulated::lane();
  for (unsigned m = 0; m < 4; ++m) {
    std::uint16_t part[2];
    for (unsigned i = 0; i < 2; ++i) {
      const auto row = emulated::of_lane<std::uint32_t>(all, 8 * m + 2 * (l % 4) + i);
      std::memcpy(&part[i], emulated::block_memory(row, 16) + 2 * (l / 4), 2);
    }
    r[m] = part[0] | static_cast<std::uint32_t>(part[1]) << 16;
  }
  sync_warp();
}

template <class T>
void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  float mine[12];
  for (unsigned i = 0; i < 12; ++i) mine[i] = unpacked<T>(i < 8 ? a[i / 2] : i < 10 ? b0 : b1, i % 2);
  const unsigned char* all = emulated::exchange(mine, sizeof mine);
  const unsigned l = emulated::lane();
  // Element (row, k) of a: lane 4 (row % 8) + k / 2 % 4, register row / 8 + 2 (k / 8), half k % 2; (k, column) of b:
  // lane 4 column + k / 2 % 4, register k / 8.
  const auto of = [all](unsigned lane, unsigned at) {
    float x;
    std::memcpy(&x, all + std::size_t{64} * lane + std::size_t{4} * at, 4);
    return x;
  };
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = l / 4 + 8 * (i / 2), column = 2 * (l % 4) + i % 2;
    float sum = 0;
    for (unsigned k = 0; k < 16; ++k) {
      const float x = of(4 * (row % 8) + k / 2 % 4, 2 * (row / 8 + 2 * (k / 8)) + k % 2);
      sum += x * of(4 * column + k / 2 % 4, 8 + 2 * (k / 8) + k % 2);
    }
    c[i] += sum;
  }
}

inline void store_shared(std::uint32_t address, std::uint32_t word) {
  std::memcpy(emulated::block_memory(address, 4), &word, 4);
}
inline uint4 load_shared(std::uint32_t address) {
  uint4 v;
  std::memcpy(&v, emulated::block_memory(address, 16), 16);
  return v;
}

inline void copy_async(std::uint32_t to, const void* from, bool valid) { emulated::copy(to, from, valid); }
inline void commit_copies() { emulated::commit(); }
template <int pending>
void wait_copies() {
  emulated::wait(pending);
}

inline void add_atomically(float* to, float4 v) {
  to[0] += v.x;
  to[1] += v.y;
  to[2] += v.z;
  to[3] += v.w;
}
inline int atomicAdd(int* to, int v) {
  const int before = *to;
  *to += v;
  return before;
}
inline int atomicExch(int* to, int v) {
  const int before = *to;
  *to = v;
  return before;
}

}  // namespace orrery::kernels::cuda
