#include "kernels/cuda/residual.h"

#include "kernels/common/philox.h"
#include "kernels/cuda/pack.cuh"

namespace orrery::kernels::cuda {
namespace {

// Decides which elements a dropout keeps, by the random numbers of kernels/cpu/residual.cpp.
struct Draw {
  // The threshold is 2^32 times the probability: an element with a random word below it is dropped.
  std::uint64_t threshold;
  DropoutStream stream;
  ElementIndex index;

  __device__ Philox words_of(std::uint64_t element) const {
    const std::uint64_t block = element / 4;
    return philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream.step,
                   static_cast<std::uint32_t>(stream.layer) << 16 | stream.op},
                  stream.seed);
  }
  __device__ static std::uint32_t word_at(const Philox& words, unsigned at) {
    return at == 0 ? words[0] : at == 1 ? words[1] : at == 2 ? words[2] : words[3];
  }

  template <int n>
  __device__ void keep(std::int64_t row, std::int64_t column, std::uint8_t (&kept)[n]) const {
    const std::uint64_t first = index.of_row(row) + static_cast<std::uint64_t>(column);
    Philox words = words_of(first);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const auto at = static_cast<unsigned>((first + i) % 4);
      if (i > 0 && at == 0) words = words_of(first + i);
      kept[i] = word_at(words, at) >= threshold ? 1 : 0;
    }
  }
};
Draw draw_of(const Dropout& d) { return {static_cast<std::uint64_t>(d.probability * 4294967296.0), d.stream, d.index}; }

struct Masks {
  std::uint8_t* data;
  std::int64_t columns;

  template <int n>
  __device__ void load(std::int64_t row, std::int64_t column, std::uint8_t (&kept)[n]) const {
    const Pack<std::uint8_t, n> pack = *reinterpret_cast<const Pack<std::uint8_t, n>*>(data + row * columns + column);
#pragma unroll
    for (int i = 0; i < n; ++i) kept[i] = pack.element[i];
  }
  template <int n>
  __device__ void store(std::int64_t row, std::int64_t column, const std::uint8_t (&kept)[n]) const {
    Pack<std::uint8_t, n> pack;
#pragma unroll
    for (int i = 0; i < n; ++i) pack.element[i] = kept[i];
    *reinterpret_cast<Pack<std::uint8_t, n>*>(data + row * columns + column) = pack;
  }
};
// Returns whether the address of every pack of 8 elements of a dropout mask (1 byte each) is a multiple of 8 bytes.
bool is_wide_mask(const std::uint8_t* mask, std::int64_t columns) {
  return reinterpret_cast<std::uintptr_t>(mask) % kWide == 0 && columns % kWide == 0;
}

struct DrawMask {
  Draw draw;
  Masks mask;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    std::uint8_t kept[n];
    draw.keep(row, column, kept);
    mask.store(row, column, kept);
  }
};

enum class Source : std::uint8_t { none, stored, drawn };  // source of the dropout mask: none, memory, or a fresh draw

template <class T, Source source>
struct AddResidual {
  Rows<const T> base, x;
  Biases biases;
  float factor;
  Draw draw;
  Masks mask;
  Rows<T> y;

  template <int n>
  __device__ static void add(const ConstArray& from, std::int64_t column, float (&v)[n]) {
    if (from.data == nullptr) return;
    float b[n];
    load(from, column, b);
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] += b[i];
  }
  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float v[n], from[n] = {};
    load(x.at(row, column), v);
    if (base.data != nullptr) load(base.at(row, column), from);
    add(biases.first, column, v);
    add(biases.second, column, v);
    if constexpr (source != Source::none) {
      std::uint8_t kept[n];
      if constexpr (source == Source::drawn) {
        draw.keep(row, column, kept);
        mask.store(row, column, kept);
      } else {
        mask.load(row, column, kept);
      }
#pragma unroll
      for (int i = 0; i < n; ++i) v[i] *= factor * static_cast<float>(kept[i]);
    }
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] += from[i];
    store(v, y.at(row, column));
  }
};

template <class T>
struct DropoutGradient {
  Rows<const T> dy;
  float factor;
  Masks mask;
  Rows<T> dx;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float g[n];
    std::uint8_t kept[n];
    load(dy.at(row, column), g);
    mask.load(row, column, kept);
#pragma unroll
    for (int i = 0; i < n; ++i) g[i] *= factor * static_cast<float>(kept[i]);
    store(g, dx.at(row, column));
  }
};

float factor_of(double probability) { return static_cast<float>(1 / (1 - probability)); }

template <Source source>
void add_residual(const ConstMatrix& base, const ConstMatrix& x, const Biases& biases, const Dropout& dropout,
                  std::uint8_t* mask, const Matrix& y, cudaStream_t stream) {
  require(x.type == y.type && (base.data == nullptr || base.type == y.type),
          "residual: base, x and y must have one type");
  const bool wide = all_wide(base, x, biases.first, biases.second, y) && is_wide_mask(mask, y.columns);
  with_type(y.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const AddResidual<T, source> f = {rows_as<T>(base), rows_as<T>(x),     biases,       factor_of(dropout.probability),
                                      draw_of(dropout), {mask, y.columns}, rows_as<T>(y)};
    launch_over_rows("residual", y.rows, y.columns, wide, f, stream);
  });
}

}  // namespace

void dropout_mask(const Dropout& dropout, std::int64_t rows, std::int64_t columns, std::uint8_t* mask,
                  cudaStream_t stream) {
  const DrawMask f = {draw_of(dropout), {mask, columns}};
  launch_over_rows("dropout_mask", rows, columns, is_wide_mask(mask, columns), f, stream);
}

void residual(ConstMatrix base, ConstMatrix x, Biases biases, double probability, const std::uint8_t* mask, Matrix y,
              cudaStream_t stream) {
  const Dropout dropout = {probability, {}, {}};
  if (mask == nullptr) return add_residual<Source::none>(base, x, biases, dropout, nullptr, y, stream);
  add_residual<Source::stored>(base, x, biases, dropout, const_cast<std::uint8_t*>(mask), y, stream);
}

void residual_drawing(ConstMatrix base, ConstMatrix x, Biases biases, const Dropout& dropout, std::uint8_t* mask,
                      Matrix y, cudaStream_t stream) {
  add_residual<Source::drawn>(base, x, biases, dropout, mask, y, stream);
}

void dropout_gradient(ConstMatrix dy, double probability, const std::uint8_t* mask, Matrix dx, cudaStream_t stream) {
  require(dy.type == dx.type, "dropout_gradient: dy and dx must have one type");
  with_type(dx.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const DropoutGradient<T> f = {
        rows_as<T>(dy), factor_of(probability), {const_cast<std::uint8_t*>(mask), dx.columns}, rows_as<T>(dx)};
    launch_over_rows("dropout_gradient", dx.rows, dx.columns, all_wide(dy, dx) && is_wide_mask(mask, dx.columns), f,
                     stream);
  });
}

}  // namespace orrery::kernels::cuda
