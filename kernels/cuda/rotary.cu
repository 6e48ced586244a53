#include "kernels/cuda/rotary.h"

#include "kernels/cuda/pack.cuh"

namespace orrery::kernels::cuda {
namespace {

// Rotates (RoPE) neighbouring pairs of elements of one row. A pair is an element in the first half of a head and the
// element at the same index of the second half; p is the number of the first pair, counted over all heads.
template <class T>
struct Rotate {
  DeviceRotaryTable table;
  Positions positions;
  float sign;
  Rows<T> x;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t p) const {
    const auto half = static_cast<unsigned>(table.half), head = static_cast<unsigned>(p) / half;
    const unsigned i = static_cast<unsigned>(p) - head * half;
    const std::int64_t at = (positions.first + row % positions.rows_per_sample) * half + i;
    T* first = x.at(row, std::int64_t{2} * head * half + i);
    float a[n], b[n], c[n], s[n];
    load(first, a);
    load(first + half, b);
    load(table.cosine + at, c);
    load(table.sine + at, s);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      const float before = a[j], turn = sign * s[j];
      a[j] = before * c[j] - b[j] * turn;
      b[j] = b[j] * c[j] + before * turn;
    }
    store(a, first);
    store(b, first + half);
  }
};

}  // namespace

void rotate(const DeviceRotaryTable& table, Positions positions, bool back, Matrix x, cudaStream_t stream) {
  require(x.columns % (2 * table.half) == 0, "rotate: x must hold whole heads");
  const bool wide = table.half % kWide == 0 && is_wide(x) && is_wide(table.cosine) && is_wide(table.sine);
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Rotate<T> f = {table, positions, back ? -1.0F : 1.0F, rows_as<T>(x)};
    launch_over_rows("rotate", x.rows, x.columns / 2, wide, f, stream);
  });
}

}  // namespace orrery::kernels::cuda
