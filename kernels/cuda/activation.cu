#include "kernels/cuda/activation.h"

#include <limits>

#include "kernels/cuda/pack.cuh"

namespace orrery::kernels::cuda {
namespace {

constexpr float kRootHalf = 0.707106781F;       // 1 / sqrt(2)
constexpr float kNormalDensity = 0.398942280F;  // density of the standard normal distribution at 0: 1 / sqrt(2 pi)

__device__ float logistic(float z) { return 1 / (1 + expf(-z)); }
// Both functions pass on what is no number.
__device__ float at_most(float z, float most) { return z > most ? most : z; }
__device__ float within(float z, float most) { return z < -most ? -most : at_most(z, most); }
__device__ float normal_share(float z) { return 0.5F * (1 + erff(z * kRootHalf)); }

template <class T>
struct Swiglu {
  Rows<const T> x;
  Rows<T> y;
  std::int64_t columns;
  float most;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float gate[n], up[n];
    load(x.at(row, column), gate);
    load(x.at(row, columns + column), up);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float z = at_most(gate[i], most);
      up[i] = within(up[i], most) * (z * logistic(z));
    }
    store(up, y.at(row, column));
  }
};

template <class T>
struct SwigluGradient {
  Rows<const T> x, dy;
  Rows<T> dx;
  std::int64_t columns;
  float most;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float gate[n], up[n], g[n];
    load(x.at(row, column), gate);
    load(x.at(row, columns + column), up);
    load(dy.at(row, column), g);
#pragma unroll
    for (int i = 0; i < n; ++i) {
      const float z = at_most(gate[i], most), s = logistic(z), u = within(up[i], most);
      gate[i] = gate[i] > most ? 0 : g[i] * u * s * (1 + z * (1 - s));
      up[i] = fabsf(up[i]) > most ? 0 : g[i] * z * s;
    }
    store(gate, dx.at(row, column));
    store(up, dx.at(row, columns + column));
  }
};

template <int n, class T>
__device__ void load_biased(Rows<const T> x, const ConstArray& bias, std::int64_t row, std::int64_t column,
                            float (&z)[n]) {
  load(x.at(row, column), z);
  if (bias.data == nullptr) return;
  float b[n];
  load(bias, column, b);
#pragma unroll
  for (int i = 0; i < n; ++i) z[i] += b[i];
}

template <class T>
struct Gelu {
  Rows<const T> x;
  ConstArray bias;
  Rows<T> y;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float z[n];
    load_biased(x, bias, row, column, z);
#pragma unroll
    for (int i = 0; i < n; ++i) z[i] *= normal_share(z[i]);
    store(z, y.at(row, column));
  }
};

template <class T>
struct GeluGradient {
  Rows<const T> x;
  ConstArray bias;
  Rows<const T> dy;
  Rows<T> dx;

  template <int n>
  __device__ void run(std::int64_t row, std::int64_t column) const {
    float z[n], g[n];
    load_biased(x, bias, row, column, z);
    load(dy.at(row, column), g);
#pragma unroll
    for (int i = 0; i < n; ++i) g[i] *= normal_share(z[i]) + z[i] * kNormalDensity * expf(-0.5F * z[i] * z[i]);
    store(g, dx.at(row, column));
  }
};

// Returns the limit, or infinity where there is none.
float bound_of(float limit) { return limit > 0 ? limit : std::numeric_limits<float>::infinity(); }

}  // namespace

// Computes SwiGLU with packs of 8 elements, each read at once. A pack must not cross the middle of a row of x, where
// the gates end and the ups begin: is_wide(y) is false if the number of columns of y does not allow packs.
void swiglu(ConstMatrix x, Matrix y, float limit, cudaStream_t stream) {
  require(x.type == y.type && x.columns == 2 * y.columns, "swiglu: x and y must have one type, x twice y's columns");
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Swiglu<T> f = {rows_as<T>(x), rows_as<T>(y), y.columns, bound_of(limit)};
    launch_over_rows("swiglu", y.rows, y.columns, all_wide(x, y), f, stream);
  });
}

void swiglu_gradient(ConstMatrix x, ConstMatrix dy, Matrix dx, float limit, cudaStream_t stream) {
  require(x.type == dy.type && x.type == dx.type && x.columns == 2 * dy.columns,
          "swiglu_gradient: x, dy and dx must have one type, x twice dy's columns");
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const SwigluGradient<T> f = {rows_as<T>(x), rows_as<T>(dy), rows_as<T>(dx), dy.columns, bound_of(limit)};
    launch_over_rows("swiglu_gradient", dy.rows, dy.columns, all_wide(x, dy, dx), f, stream);
  });
}

void gelu(ConstMatrix x, ConstArray bias, Matrix y, cudaStream_t stream) {
  require(x.type == y.type, "gelu: x and y must have one type");
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Gelu<T> f = {rows_as<T>(x), bias, rows_as<T>(y)};
    launch_over_rows("gelu", y.rows, y.columns, all_wide(x, bias, y), f, stream);
  });
}

void gelu_gradient(ConstMatrix x, ConstArray bias, ConstMatrix dy, Matrix dx, cudaStream_t stream) {
  require(x.type == dy.type && x.type == dx.type, "gelu_gradient: x, dy and dx must have one type");
  with_type(x.type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const GeluGradient<T> f = {rows_as<T>(x), bias, rows_as<T>(dy), rows_as<T>(dx)};
    launch_over_rows("gelu_gradient", dy.rows, dy.columns, all_wide(x, bias, dy, dx), f, stream);
  });
}

}  // namespace orrery::kernels::cuda
