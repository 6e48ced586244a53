#include "kernels/cuda/elementwise.h"

#include "kernels/cuda/factor.cuh"
#include "kernels/cuda/pack.cuh"

namespace orrery::kernels::cuda {
namespace {

struct Stateless {
  __device__ void begin() const {}
};

template <class T>
struct Add : Stateless {
  const T *a, *b;
  T* y;

  template <int n>
  __device__ void run(std::int64_t at) const {
    float u[n], v[n];
    load(a + at, u);
    load(b + at, v);
#pragma unroll
    for (int i = 0; i < n; ++i) u[i] += v[i];
    store(u, y + at);
  }
};

template <class From, class To>
struct Accumulate : Stateless {
  const From* from;
  To* to;
  bool maximum;

  template <int n>
  __device__ void run(std::int64_t at) const {
    float u[n], v[n];
    load(from + at, u);
    load(to + at, v);
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] = maximum ? (v[i] < u[i] ? u[i] : v[i]) : v[i] + u[i];
    store(v, to + at);
  }
};

template <class From, class To>
struct Cast : Stateless {
  const From* from;
  To* to;

  template <int n>
  __device__ void run(std::int64_t at) const {
    float x[n];
    load(from + at, x);
    store(x, to + at);
  }
};

template <class To>
struct Fill : Stateless {
  float value;
  To* to;

  template <int n>
  __device__ void run(std::int64_t at) const {
    float x[n];
#pragma unroll
    for (int i = 0; i < n; ++i) x[i] = value;
    store(x, to + at);
  }
};

template <class From, class To>
struct Multiply {
  Factor factor;
  const From* from;
  To* to;
  int* not_finite;
  float scale = 0;

  __device__ void begin() { scale = static_cast<float>(value_of(factor)); }
  template <int n>
  __device__ void run(std::int64_t at) const {
    float x[n];
    load(from + at, x);
    bool finite = true;
#pragma unroll
    for (int i = 0; i < n; ++i) {
      finite = finite && fabsf(x[i]) <= 3.402823466e38F;
      x[i] *= scale;
    }
    store(x, to + at);
    if (not_finite != nullptr && !finite) *not_finite = 1;  // a race is harmless here: all threads store the same value
  }
};

template <class T>
struct SoftCap : Stateless {
  float cap;
  T* x;

  template <int n>
  __device__ void run(std::int64_t at) const {
    float v[n];
    load(x + at, v);
#pragma unroll
    for (int i = 0; i < n; ++i) v[i] = cap * tanhf(v[i] / cap);
    store(v, x + at);
  }
};

template <class From, class To>
struct SoftCapGradient : Stateless {
  float cap;
  const From* y;
  To* gradient;

  template <int n>
  __device__ void run(std::int64_t at) const {
    float v[n], g[n];
    load(y + at, v);
    load(gradient + at, g);
#pragma unroll
    for (int i = 0; i < n; ++i) g[i] *= 1 - (v[i] / cap) * (v[i] / cap);
    store(g, gradient + at);
  }
};

constexpr int kTile = 32;  // number of rows, and number of columns, of a tile in shared memory

// Converts a matrix to another type, and writes both the result and its transpose. Tiles go through shared memory so
// that both matrices are written along rows. A row of the tile in shared memory is one word longer than needed, so that
// the elements of a column lie in different banks.
template <class From, class To>
__global__ void __launch_bounds__(kBlock)
    cast_tile(std::int64_t rows, std::int64_t columns, Rows<const From> from, Rows<To> to, Rows<To> transposed) {
  auto* tile = reinterpret_cast<float(*)[kTile + 1]>(shared_memory());
  const std::int64_t row0 = std::int64_t{blockIdx.x} * kTile, column0 = std::int64_t{blockIdx.y} * kTile;
  const int lane = static_cast<int>(threadIdx.x) % kTile, first = static_cast<int>(threadIdx.x) / kTile;
  constexpr int kStep = kBlock / kTile;
  for (int r = first; r < kTile; r += kStep) {
    if (row0 + r >= rows || column0 + lane >= columns) continue;
    tile[r][lane] = widen(*from.at(row0 + r, column0 + lane));
    narrow(tile[r][lane], *to.at(row0 + r, column0 + lane));
  }
  sync_block();
  for (int c = first; c < kTile; c += kStep) {
    if (column0 + c >= columns || row0 + lane >= rows) continue;
    narrow(tile[lane][c], *transposed.at(column0 + c, row0 + lane));
  }
}

}  // namespace

void add(std::int64_t n, ConstArray a, ConstArray b, Array y, cudaStream_t stream) {
  require(a.type == b.type && a.type == y.type, "add: a, b and y must have one type");
  with_type(a.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Add<T> f = {{}, static_cast<const T*>(a.data), static_cast<const T*>(b.data), static_cast<T*>(y.data)};
    launch_over_elements("add", n, all_wide(a, b, y), f, stream);
  });
}

static void accumulate(std::int64_t n, ConstArray from, Array to, bool maximum, cudaStream_t stream) {
  with_types(from.type, to.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const Accumulate<From, To> f = {{}, static_cast<const From*>(from.data), static_cast<To*>(to.data), maximum};
    launch_over_elements("accumulate", n, all_wide(from, to), f, stream);
  });
}

void accumulate(std::int64_t n, ConstArray from, Array to, cudaStream_t stream) {
  accumulate(n, from, to, false, stream);
}
void accumulate_maximum(std::int64_t n, ConstArray from, Array to, cudaStream_t stream) {
  accumulate(n, from, to, true, stream);
}

void cast(std::int64_t n, ConstArray from, Array to, cudaStream_t stream) {
  with_types(from.type, to.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const Cast<From, To> f = {{}, static_cast<const From*>(from.data), static_cast<To*>(to.data)};
    launch_over_elements("cast", n, all_wide(from, to), f, stream);
  });
}

void cast_transpose(ConstMatrix from, Matrix to, Matrix transposed, cudaStream_t stream) {
  require(to.type == transposed.type, "cast_transpose: both results must have one type");
  with_types(from.type, to.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const dim3 grid(static_cast<unsigned>(ceil_div(from.rows, kTile)),
                    static_cast<unsigned>(ceil_div(from.columns, kTile)));
    launch("cast_transpose", cast_tile<From, To>, grid, kBlock, sizeof(float) * kTile * (kTile + 1), stream, from.rows,
           from.columns, rows_as<From>(from), rows_as<To>(to), rows_as<To>(transposed));
  });
}

void fill(std::int64_t n, float value, Array to, cudaStream_t stream) {
  with_type(to.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    launch_over_elements("fill", n, is_wide(to), Fill<T>{{}, value, static_cast<T*>(to.data)}, stream);
  });
}

void multiply(std::int64_t n, Factor factor, ConstArray x, Array y, int* not_finite, cudaStream_t stream) {
  with_types(x.type, y.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const Multiply<From, To> f = {factor, static_cast<const From*>(x.data), static_cast<To*>(y.data), not_finite};
    launch_over_elements("multiply", n, all_wide(x, y), f, stream);
  });
}

void soft_cap(std::int64_t n, double cap, Array x, cudaStream_t stream) {
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SoftCap<T> f = {{}, static_cast<float>(cap), static_cast<T*>(x.data)};
    launch_over_elements("soft_cap", n, is_wide(x), f, stream);
  });
}

void soft_cap_gradient(std::int64_t n, double cap, ConstArray y, Array gradient, cudaStream_t stream) {
  with_types(y.type, gradient.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    const SoftCapGradient<From, To> f = {
        {}, static_cast<float>(cap), static_cast<const From*>(y.data), static_cast<To*>(gradient.data)};
    launch_over_elements("soft_cap_gradient", n, all_wide(y, gradient), f, stream);
  });
}

}  // namespace orrery::kernels::cuda
