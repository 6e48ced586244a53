#pragma once

#include <cstdint>
#include <type_traits>

#include <cuda_runtime_api.h>

// The CUDA versions of the kernels in kernels/cpu: same names, arguments and meaning, on device memory. Every function
// enqueues work on `stream`, its last argument, and never waits; it throws std::runtime_error, quoting the call that
// failed. Tensors may be stored in 16 bits; arithmetic is in fp32, rounded once, to nearest even, when stored.
// Statistics, sums and log-sum-exps are fp32. The same call on the same GPU gives the same bits, unless a header says
// otherwise. Accesses are 16 bytes wide if all pointers and strides allow it, else element by element.
namespace orrery::kernels::cuda {

enum class Type : std::uint8_t { fp32, bf16, fp16 };
constexpr std::int64_t bytes_of(Type type) { return type == Type::fp32 ? 4 : 2; }

// An array of elements in device memory.
template <class Void>
struct BasicArray {
  Void* data = nullptr;
  Type type = Type::fp32;

  operator BasicArray<const void>() const requires(!std::is_const_v<Void>) { return {data, type}; }
};
using Array = BasicArray<void>;
using ConstArray = BasicArray<const void>;

// A row-major view in device memory, like Matrix in kernels/common/matrix.h; stride in elements.
template <class Void>
struct BasicMatrix {
  Void* data = nullptr;
  Type type = Type::fp32;
  std::int64_t rows = 0, columns = 0;
  std::int64_t stride = 0;

  operator BasicMatrix<const void>() const requires(!std::is_const_v<Void>) {
    return {data, type, rows, columns, stride};
  }
};
using Matrix = BasicMatrix<void>;
using ConstMatrix = BasicMatrix<const void>;

// A view (batch, rows, heads, head_dim), like Heads in kernels/common/matrix.h: tokens lie `stride` elements apart.
template <class Void>
struct BasicHeads {
  Void* data = nullptr;
  Type type = Type::fp32;
  std::int64_t batch = 0, rows = 0, heads = 0, head_dim = 0;
  std::int64_t stride = 0;

  operator BasicHeads<const void>() const requires(!std::is_const_v<Void>) {
    return {data, type, batch, rows, heads, head_dim, stride};
  }
};
using Heads = BasicHeads<void>;
using ConstHeads = BasicHeads<const void>;

inline Matrix matrix(Array a, std::int64_t rows, std::int64_t columns) {
  return {a.data, a.type, rows, columns, columns};
}
inline ConstMatrix matrix(ConstArray a, std::int64_t rows, std::int64_t columns) {
  return {a.data, a.type, rows, columns, columns};
}

template <class Void>
Void* element_at(Void* data, Type type, std::int64_t index) {
  using Byte = std::conditional_t<std::is_const_v<Void>, const char, char>;
  return static_cast<Byte*>(data) + index * bytes_of(type);
}

template <class Void>
BasicMatrix<Void> rows_of(BasicMatrix<Void> m, std::int64_t first, std::int64_t count) {
  return {element_at(m.data, m.type, first * m.stride), m.type, count, m.columns, m.stride};
}

template <class Void>
BasicMatrix<Void> columns_of(BasicMatrix<Void> m, std::int64_t first, std::int64_t count) {
  return {element_at(m.data, m.type, first), m.type, m.rows, count, m.stride};
}

// Returns a view of heads [first, first + heads) among the packed columns of m, as in kernels/common/matrix.h.
template <class Void>
BasicHeads<Void> heads_of(BasicMatrix<Void> m, std::int64_t batch, std::int64_t first, std::int64_t heads,
                          std::int64_t head_dim) {
  return {element_at(m.data, m.type, first * head_dim), m.type, batch, m.rows / batch, heads, head_dim, m.stride};
}

// Scratch memory of one call, at least 16-byte aligned. A function that needs scratch memory takes it as an argument,
// and a function `..._workspace` returns the number of bytes needed. Later work on the same stream may use the memory
// again.
struct Workspace {
  void* data = nullptr;
  std::int64_t bytes = 0;
};

}  // namespace orrery::kernels::cuda
