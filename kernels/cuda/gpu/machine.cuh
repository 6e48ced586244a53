#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/cuda/check.h"

// Machine-dependent functions of the kernels, for a GPU. tests/kernels/cuda/emulated has another version with the same
// names that runs the kernels on the host, thread by thread, so that they can be checked without a GPU. The PTX
// instructions are those of the PTX ISA manual 9.0, chapter 9.7.
namespace orrery::kernels::cuda {

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, unsigned block, std::int64_t shared_bytes,
            cudaStream_t stream, const Arguments&... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  // Bytes of shared memory that a kernel gets without asking for more: CUDA C++ programming guide, 20.8.3
  constexpr std::int64_t kGranted = 48 << 10;
  if (shared_bytes > kGranted) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          name);
  }
  kernel<<<grid, block, static_cast<std::size_t>(shared_bytes), stream>>>(arguments...);
  check(cudaGetLastError(), name);
}

__device__ inline unsigned char* shared_memory() {
  extern __shared__ __align__(1024) unsigned char orrery_shared_memory[];
  return orrery_shared_memory;
}
__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ inline void sync_block() { __syncthreads(); }
__device__ inline void sync_warp() { __syncwarp(); }
template <class T>
__device__ inline T shuffle_xor(T value, int mask) {
  return __shfl_xor_sync(0xffffffffU, value, mask);
}

// Storage types of 16 bits and their conversions: widen() to float, narrow() from float, pack() of two floats into one
// word, the low half first.
struct Bf16Bits {
  std::uint16_t bits;
};
struct Fp16Bits {
  std::uint16_t bits;
};
__device__ inline float widen(float x) { return x; }
__device__ inline float widen(Bf16Bits x) { return __uint_as_float(static_cast<std::uint32_t>(x.bits) << 16); }
__device__ inline float widen(Fp16Bits x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
__device__ inline void narrow(float x, float& to) { to = x; }
__device__ inline void narrow(float x, Bf16Bits& to) { asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(to.bits) : "f"(x)); }
__device__ inline void narrow(float x, Fp16Bits& to) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(to.bits) : "f"(x)); }

template <class T>
__device__ inline std::uint32_t pack(float low, float high);
template <>
__device__ inline std::uint32_t pack<Bf16Bits>(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}
template <>
__device__ inline std::uint32_t pack<Fp16Bits>(float low, float high) {
  std::uint32_t word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(high), "f"(low));
  return word;
}

// Computes 2^x within 2 ulp (PTX instruction ex2.approx).
__device__ inline float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// Loads four 8 x 8 matrices of 16-bit elements (ldmatrix): thread i of a warp gives the address of row i % 8 of matrix
// i / 8, which is 16 bytes long. Register m of thread `lane` then holds two elements of matrix m: (lane / 4, 2 (lane %
// 4)) and the one after it. The transposing function takes the elements from the transposed matrix.
__device__ inline void load_matrices(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], std::uint32_t address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

// Computes c(16, 8) += a(16, 16) b(16, 8) with one warp.
template <class T>
__device__ inline void multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1);
template <>
__device__ inline void multiply_add<Bf16Bits>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ inline void multiply_add<Fp16Bits>(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                              std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline void store_shared(std::uint32_t address, std::uint32_t word) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(word) : "memory");
}
__device__ inline uint4 load_shared(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

// Copies 16 bytes to shared memory asynchronously; writes zeros where `valid` is false (nothing is read then).
__device__ inline void copy_async(std::uint32_t to, const void* from, bool valid) {
  const int bytes = valid ? 16 : 0;
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(__cvta_generic_to_global(from)),
               "r"(bytes)
               : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until, of the groups of asynchronous copies that this thread has started, at most the `pending` newest are
// still in progress.
template <int pending>
__device__ inline void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}

// Adds four floats to memory, each atomically.
__device__ inline void add_atomically(float* to, float4 v) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "f"(v.x), "f"(v.y),
               "f"(v.z), "f"(v.w)
               : "memory");
#else
  atomicAdd(to, v.x);
  atomicAdd(to + 1, v.y);
  atomicAdd(to + 2, v.z);
  atomicAdd(to + 3, v.w);
#endif
}

}  // namespace orrery::kernels::cuda
