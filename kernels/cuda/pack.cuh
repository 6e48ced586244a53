#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include <machine.cuh>

#include "kernels/cuda/tensor.h"

// This header has the loops of the memory-bound kernels over tensors. Every thread takes a pack: `width` neighbouring
// elements, 8 if all rows are 16-byte aligned, else 1. A kernel is a functor that is called with the position of a
// pack.
namespace orrery::kernels::cuda {

constexpr unsigned kBlock = 256;  // number of threads of a thread block
constexpr int kWide = 8;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

template <class T>
struct Tag {
  using type = T;
};

// Calls f with a compile-time tag (Tag<T>) for the type T in which elements are stored.
template <class F>
void with_type(Type type, const F& f) {
  switch (type) {
    case Type::fp32:
      return f(Tag<float>{});
    case Type::bf16:
      return f(Tag<Bf16Bits>{});
    case Type::fp16:
      return f(Tag<Fp16Bits>{});
  }
}
template <class F>
void with_types(Type first, Type second, const F& f) {
  with_type(first, [&](auto a) { with_type(second, [&](auto b) { f(a, b); }); });
}

// Calls f with the number of elements in a pack, 8 or 1, as a compile-time constant.
template <class F>
void with_width(bool wide, const F& f) {
  if (wide)
    f(std::integral_constant<int, kWide>{});
  else
    f(std::integral_constant<int, 1>{});
}

inline bool is_wide(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }
// Returns whether every row begins at a multiple of 16 bytes and consists of whole packs of 8. An absent tensor counts
// as aligned.
template <class Void>
bool is_wide(const BasicMatrix<Void>& m) {
  return m.data == nullptr || (is_wide(m.data) && m.stride * bytes_of(m.type) % 16 == 0 && m.columns % kWide == 0);
}
template <class Void>
bool is_wide(const BasicArray<Void>& a) {
  return is_wide(a.data);
}
template <class... Tensors>
bool all_wide(const Tensors&... tensors) {
  return (is_wide(tensors) && ...);
}

template <class T, int n>
struct alignas(std::min<std::size_t>(16, sizeof(T) * n)) Pack {
  T element[n];
};

template <int n, class T>
__device__ inline void load(const T* from, float (&x)[n]) {
  const Pack<T, n> pack = *reinterpret_cast<const Pack<T, n>*>(from);
#pragma unroll
  for (int i = 0; i < n; ++i) x[i] = widen(pack.element[i]);
}
template <int n, class T>
__device__ inline void store(const float (&x)[n], T* to) {
  Pack<T, n> pack;
#pragma unroll
  for (int i = 0; i < n; ++i) narrow(x[i], pack.element[i]);
  *reinterpret_cast<Pack<T, n>*>(to) = pack;
}

// Loads n neighbouring elements of a vector whose type is known only at run time. Kernels read the vector again for
// every row, so the loads go through the cache.
template <int n>
__device__ inline void load(const ConstArray& from, std::int64_t at, float (&x)[n]) {
  if (from.type == Type::fp32)
    load(static_cast<const float*>(from.data) + at, x);
  else if (from.type == Type::bf16)
    load(static_cast<const Bf16Bits*>(from.data) + at, x);
  else
    load(static_cast<const Fp16Bits*>(from.data) + at, x);
}
template <int n>
__device__ inline void store(const float (&x)[n], const Array& to, std::int64_t at) {
  if (to.type == Type::fp32)
    store(x, static_cast<float*>(to.data) + at);
  else if (to.type == Type::bf16)
    store(x, static_cast<Bf16Bits*>(to.data) + at);
  else
    store(x, static_cast<Fp16Bits*>(to.data) + at);
}
__device__ inline void add_to(const Array& to, std::int64_t at, float value) {
  float x[1];
  load(ConstArray{to.data, to.type}, at, x);
  x[0] += value;
  store(x, to, at);
}

// A view of the rows of a matrix with elements of type T in device memory; rows are `stride` elements apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;

  __device__ T* at(std::int64_t row, std::int64_t column) const { return data + row * stride + column; }
};
template <class T>
Rows<T> rows_as(const Matrix& m) {
  return {static_cast<T*>(m.data), m.stride};
}
template <class T>
Rows<const T> rows_as(const ConstMatrix& m) {
  return {static_cast<const T*>(m.data), m.stride};
}

// Calls f.begin() once per thread, then f.run<width>(i) for each pack (`width` neighbouring elements), where i is the
// index of its first element; a last, incomplete pack is run one element at a time.
template <int width, class F>
__global__ void __launch_bounds__(kBlock) over_elements(std::int64_t n, F f) {
  f.begin();
  const std::int64_t step = std::int64_t{gridDim.x} * kBlock * width;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * kBlock + threadIdx.x) * width; i < n; i += step) {
    if (i + width <= n) {
      f.template run<width>(i);
    } else {
      for (std::int64_t j = i; j < n; ++j) f.template run<1>(j);
    }
  }
}
template <class F>
void launch_over_elements(const char* name, std::int64_t n, bool wide, const F& f, cudaStream_t stream) {
  // Greatest number of thread blocks of a launch: several times the number that a GPU of 132 to 160 multiprocessors
  // runs at once.
  constexpr std::int64_t kMostBlocks = 4096;
  with_width(wide, [&](auto width) {
    const std::int64_t blocks = std::min(kMostBlocks, ceil_div(n, std::int64_t{kBlock} * width()));
    launch(name, over_elements<width(), F>, dim3(static_cast<unsigned>(blocks)), kBlock, 0, stream, n, f);
  });
}

// Calls f.run<width>(row, column) for every pack (`width` neighbouring elements) of a matrix. Each row is handled by
// 2^lanes neighbouring threads.
template <int width, class F>
__global__ void __launch_bounds__(kBlock) over_rows(std::int64_t rows, std::int64_t columns, int lanes, F f) {
  const std::int64_t row = std::int64_t{blockIdx.x} * (kBlock >> lanes) + (threadIdx.x >> lanes);
  const unsigned lane = threadIdx.x & ((1U << lanes) - 1);
  const std::int64_t column = ((std::int64_t{blockIdx.y} << lanes) + lane) * width;
  if (row < rows && column < columns) f.template run<width>(row, column);
}
template <class F>
void launch_over_rows(const char* name, std::int64_t rows, std::int64_t columns, bool wide, const F& f,
                      cudaStream_t stream) {
  with_width(wide, [&](auto width) {
    const std::int64_t packs = ceil_div(columns, width());
    int lanes = 0;
    while ((1U << lanes) < kBlock && (std::int64_t{1} << lanes) < packs) ++lanes;
    const dim3 grid(static_cast<unsigned>(ceil_div(rows, kBlock >> lanes)),
                    static_cast<unsigned>(ceil_div(packs, std::int64_t{1} << lanes)));
    launch(name, over_rows<width(), F>, grid, kBlock, 0, stream, rows, columns, lanes, f);
  });
}

}  // namespace orrery::kernels::cuda
