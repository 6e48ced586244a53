#include "kernels/cuda/update.h"

#include "kernels/cuda/factor.cuh"
#include "kernels/cuda/pack.cuh"

namespace orrery::kernels::cuda {
namespace {

template <class G, class W, bool adam>
struct Descend {
  UpdateConstants constants;
  Factor factor;
  const G* gradient;
  W* weights;
  float *moment1, *moment2;
  Array forward;
  float scale = 0;

  __device__ void begin() { scale = static_cast<float>(constants.gradient_factor * value_of(factor)); }

  template <int n>
  __device__ void run(std::int64_t at) const {
    const UpdateConstants& k = constants;
    float g[n], w[n];
    load(gradient + at, g);
    load(weights + at, w);
#pragma unroll
    for (int i = 0; i < n; ++i) g[i] = g[i] * scale + k.decay * w[i];
    if constexpr (adam) {
      float m[n], v[n];
      load(moment1 + at, m);
      load(moment2 + at, v);
#pragma unroll
      for (int i = 0; i < n; ++i) {
        m[i] = k.beta1 * m[i] + k.rest1 * g[i];
        v[i] = k.beta2 * v[i] + k.rest2 * (g[i] * g[i]);
        w[i] = k.shrink * w[i] - k.rate * m[i] / (sqrtf(v[i]) * k.root_correction + k.epsilon);
      }
      store(m, moment1 + at);
      store(v, moment2 + at);
    } else {
#pragma unroll
      for (int i = 0; i < n; ++i) w[i] -= k.rate * g[i];
    }
    store(w, weights + at);
    if (forward.data != nullptr) store(w, forward, at);
  }
};

}  // namespace

void update(const UpdateRule& rule, UpdateStep step, Factor factor, std::int64_t n, ConstArray gradient, Array weights,
            float* moment1, float* moment2, Array forward, cudaStream_t stream) {
  const bool wide = all_wide(gradient, weights, moment1, moment2, forward);
  const auto go = [&](auto a, auto b, auto adam) {
    using G = typename decltype(a)::type;
    using W = typename decltype(b)::type;
    const Descend<G, W, adam()> f = {constants_of(rule, step),
                                     factor,
                                     static_cast<const G*>(gradient.data),
                                     static_cast<W*>(weights.data),
                                     moment1,
                                     moment2,
                                     forward};
    launch_over_elements("update", n, wide, f, stream);
  };
  with_types(gradient.type, weights.type, [&](auto a, auto b) {
    if (rule.kind == UpdateRule::Kind::sgd)
      go(a, b, std::false_type{});
    else
      go(a, b, std::true_type{});
  });
}

}  // namespace orrery::kernels::cuda
