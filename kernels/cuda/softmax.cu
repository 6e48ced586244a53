#include "kernels/cuda/softmax.h"

#include "kernels/cuda/team.cuh"

namespace orrery::kernels::cuda {
namespace {

// Calls f(column, first, last) for each pack of `width` columns (keys) that a thread takes: the pack begins at
// `column`, and the mask lets the query attend to the pack's elements [first, last).
template <int width, class F>
__device__ void over_seen(const Team& team, std::int64_t columns, KeyRange seen, const F& f) {
  team.over<width>(columns, [&](std::int64_t c) {
    const std::int64_t first = seen.first - c, last = seen.last - c;
    f(c, first > 0 ? (first < width ? static_cast<int>(first) : width) : 0,
      last > 0 ? (last < width ? static_cast<int>(last) : width) : 0);
  });
}

template <int width, class From, class To>
__global__ void __launch_bounds__(kBlock)
    softmax_row(Team team, std::int64_t rows, std::int64_t columns, std::int64_t queries, CausalMask mask,
                Rows<const From> scores, Rows<To> probabilities) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  const KeyRange seen = visible_keys(mask, row % queries, columns);
  const From* in = scores.at(row, 0);
  float largest = -INFINITY;
  over_seen<width>(team, columns, seen, [&](std::int64_t c, int first, int last) {
    if (first >= last) return;
    float x[width];
    load(in + c, x);
#pragma unroll
    for (int i = 0; i < width; ++i) largest = i >= first && i < last && largest < x[i] ? x[i] : largest;
  });
  largest = team.join(largest, Largest{});
  float total = 0;
  over_seen<width>(team, columns, seen, [&](std::int64_t c, int first, int last) {
    if (first >= last) return;
    float x[width];
    load(in + c, x);
#pragma unroll
    for (int i = 0; i < width; ++i) total += i >= first && i < last ? expf(x[i] - largest) : 0;
  });
  total = team.join(total, Sum{});
  To* out = probabilities.at(row, 0);
  over_seen<width>(team, columns, seen, [&](std::int64_t c, int first, int last) {
    float x[width] = {};
    if (first < last) load(in + c, x);
#pragma unroll
    for (int i = 0; i < width; ++i) x[i] = i >= first && i < last ? expf(x[i] - largest) / total : 0;
    store(x, out + c);
  });
}

template <int width, class From, class To>
__global__ void __launch_bounds__(kBlock) gradient_row(Team team, std::int64_t rows, std::int64_t columns,
                                                       Rows<const From> probabilities, Rows<To> gradient) {
  const std::int64_t row = team.row();
  if (row >= rows) return;
  const From* in = probabilities.at(row, 0);
  To* out = gradient.at(row, 0);
  float mean = 0;
  team.over<width>(columns, [&](std::int64_t c) {
    float p[width], g[width];
    load(in + c, p);
    load(out + c, g);
#pragma unroll
    for (int i = 0; i < width; ++i) mean += p[i] * g[i];
  });
  mean = team.join(mean, Sum{});
  team.over<width>(columns, [&](std::int64_t c) {
    float p[width], g[width];
    load(in + c, p);
    load(out + c, g);
#pragma unroll
    for (int i = 0; i < width; ++i) g[i] = p[i] * (g[i] - mean);
    store(g, out + c);
  });
}

}  // namespace

void masked_softmax(ConstMatrix scores, std::int64_t queries, const CausalMask& mask, Matrix probabilities,
                    cudaStream_t stream) {
  with_types(scores.type, probabilities.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    with_width(all_wide(scores, probabilities), [&](auto width) {
      launch_teams("masked_softmax", softmax_row<width(), From, To>, scores.rows, team_for(scores.columns), stream,
                   scores.rows, scores.columns, queries, mask, rows_as<From>(scores), rows_as<To>(probabilities));
    });
  });
}

void softmax_gradient(ConstMatrix probabilities, Matrix gradient, cudaStream_t stream) {
  with_types(probabilities.type, gradient.type, [&](auto a, auto b) {
    using From = typename decltype(a)::type;
    using To = typename decltype(b)::type;
    with_width(all_wide(probabilities, gradient), [&](auto width) {
      launch_teams("softmax_gradient", gradient_row<width(), From, To>, gradient.rows, team_for(gradient.columns),
                   stream, gradient.rows, gradient.columns, rows_as<From>(probabilities), rows_as<To>(gradient));
    });
  });
}

}  // namespace orrery::kernels::cuda
