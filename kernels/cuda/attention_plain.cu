#include "kernels/cuda/attention_parts.h"
#include "kernels/cuda/attention_tiles.cuh"
#include "kernels/cuda/team.cuh"

// Attention in fp32: each warp takes a row of queries (or, for the keys' gradients, of keys) and goes through the keys
// (or queries) one row at a time, without tensor cores and atomics.
namespace orrery::kernels::cuda {
namespace {

// Number of elements of a row that each thread of a warp holds; thread `lane` has elements lane + 32 i. A warp can hold
// 256 elements.
constexpr int kEach = 8;

struct Row {
  float x[kEach];

  __device__ static Row zero() { return {}; }
  __device__ static int column(int i) { return static_cast<int>(threadIdx.x % kWarp) + i * static_cast<int>(kWarp); }
  __device__ static Row at(const HeadView<const float>& head, int row) {
    Row r = {};
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = column(i);
      if (c < head.head_dim) r.x[i] = head.data[row * head.stride + c];
    }
    return r;
  }
  __device__ void save(const HeadView<float>& head, int row) const {
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int c = column(i);
      if (c < head.head_dim) head.data[row * head.stride + c] = x[i];
    }
  }
  __device__ float dot(const Row& other) const {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < kEach; ++i) sum += x[i] * other.x[i];
    return join_warp(sum, Sum{});
  }
  // Computes this = factor * this + share * other, element by element.
  __device__ void mix(float factor, float share, const Row& other) {
#pragma unroll
    for (int i = 0; i < kEach; ++i) x[i] = factor * x[i] + share * other.x[i];
  }
};

// The query or key on which a warp works: its sample, head and row. Every sample and head has `rows` rows.
struct Place {
  int sample, head, row;
  std::int64_t index;

  __device__ static Place of_warp(int heads, int rows) {
    const std::int64_t index = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp;
    return {static_cast<int>(index / rows / heads), static_cast<int>(index / rows % heads),
            static_cast<int>(index % rows), index};
  }
};

struct Call {
  HeadsView<const float> q, k, v, out, dout;
  HeadsView<float> result, dq, dk, dv;
  float* lse;
  // The dot product of each row of dout and out, (batch, heads, query).
  float* products;
  int batch, heads, key_heads;
  float scale;
  CausalRange sight;
};

__global__ void __launch_bounds__(kBlock) forward_row(Call c) {
  const Place at = Place::of_warp(c.heads, c.q.rows);
  if (at.sample >= c.batch) return;
  const int key_head = at.head / (c.heads / c.key_heads);
  const auto k = c.k.of(at.sample, key_head), v = c.v.of(at.sample, key_head);
  const Row q = Row::at(c.q.of(at.sample, at.head), at.row);
  Row out = Row::zero();
  float largest = -INFINITY, sum = 0;
  for (int key = c.sight.first(at.row); key < c.sight.last(at.row); ++key) {
    const float score = c.scale * q.dot(Row::at(k, key));
    const float now = fmaxf(largest, score), shrink = expf(largest - now), p = expf(score - now);
    sum = sum * shrink + p;
    out.mix(shrink, p, Row::at(v, key));
    largest = now;
  }
  out.mix(sum == 0 ? 0 : 1 / sum, 0, out);
  out.save(c.result.of(at.sample, at.head), at.row);
  if (threadIdx.x % kWarp == 0) c.lse[at.index] = sum == 0 ? -INFINITY : largest + logf(sum);
}

__global__ void __launch_bounds__(kBlock) query_gradient_row(Call c) {
  const Place at = Place::of_warp(c.heads, c.q.rows);
  if (at.sample >= c.batch) return;
  const int key_head = at.head / (c.heads / c.key_heads);
  const auto k = c.k.of(at.sample, key_head), v = c.v.of(at.sample, key_head);
  const Row q = Row::at(c.q.of(at.sample, at.head), at.row), dout = Row::at(c.dout.of(at.sample, at.head), at.row);
  const float product = dout.dot(Row::at(c.out.of(at.sample, at.head), at.row)), lse = c.lse[at.index];
  Row dq = Row::zero();
  for (int key = c.sight.first(at.row); key < c.sight.last(at.row); ++key) {
    const Row of_key = Row::at(k, key);
    const float p = expf(c.scale * q.dot(of_key) - lse);
    dq.mix(1, c.scale * p * (dout.dot(Row::at(v, key)) - product), of_key);
  }
  dq.save(c.dq.of(at.sample, at.head), at.row);
  if (threadIdx.x % kWarp == 0) c.products[at.index] = product;
}

__global__ void __launch_bounds__(kBlock) key_gradient_row(Call c) {
  const Place at = Place::of_warp(c.key_heads, c.k.rows);
  if (at.sample >= c.batch) return;
  const int group = c.heads / c.key_heads;
  const Row k = Row::at(c.k.of(at.sample, at.head), at.row), v = Row::at(c.v.of(at.sample, at.head), at.row);
  Row dk = Row::zero(), dv = Row::zero();
  for (int head = at.head * group; head < (at.head + 1) * group; ++head) {
    const auto q = c.q.of(at.sample, head), dout = c.dout.of(at.sample, head);
    const std::int64_t statistics = (std::int64_t{at.sample} * c.heads + head) * c.q.rows;
    for (int query = 0; query < c.q.rows; ++query) {
      if (at.row < c.sight.first(query) || at.row >= c.sight.last(query)) continue;
      const Row of_query = Row::at(q, query), slope = Row::at(dout, query);
      const float p = expf(c.scale * of_query.dot(k) - c.lse[statistics + query]);
      dv.mix(1, p, slope);
      dk.mix(1, c.scale * p * (slope.dot(v) - c.products[statistics + query]), of_query);
    }
  }
  dk.save(c.dk.of(at.sample, at.head), at.row);
  dv.save(c.dv.of(at.sample, at.head), at.row);
}

dim3 warps_for(std::int64_t rows) { return dim3(static_cast<unsigned>(ceil_div(rows, kWarps))); }

Call call_for(const ConstHeads& q, const ConstHeads& k, const ConstHeads& v, float scale, const CausalMask& mask) {
  require(q.head_dim <= kEach * kWarp, "attention: fp32 needs head_dim up to 256");
  Call c = {};
  c.q = view_as<float>(q);
  c.k = view_as<float>(k);
  c.v = view_as<float>(v);
  c.batch = static_cast<int>(q.batch);
  c.heads = static_cast<int>(q.heads);
  c.key_heads = static_cast<int>(k.heads);
  c.scale = scale;
  c.sight = sight_of(mask, k.rows);
  return c;
}

}  // namespace

void attention_plain(const ForwardArguments& a, cudaStream_t stream) {
  Call c = call_for(a.q, a.k, a.v, a.scale, a.mask);
  c.result = view_as<float>(a.out);
  c.lse = a.lse;
  launch("attention", forward_row, warps_for(a.q.batch * a.q.heads * a.q.rows), kBlock, 0, stream, c);
}

void attention_gradient_plain(const BackwardArguments& a, cudaStream_t stream) {
  const AttentionSaved& s = a.saved;
  Call c = call_for(s.q, s.k, s.v, a.scale, a.mask);
  c.out = view_as<float>(s.out);
  c.dout = view_as<float>(a.dout);
  c.dq = view_as<float>(a.dq);
  c.dk = view_as<float>(a.dk);
  c.dv = view_as<float>(a.dv);
  c.lse = const_cast<float*>(s.lse);
  c.products = a.statistics;
  launch("attention_gradient", query_gradient_row, warps_for(s.q.batch * s.q.heads * s.q.rows), kBlock, 0, stream, c);
  launch("attention_gradient", key_gradient_row, warps_for(s.k.batch * s.k.heads * s.k.rows), kBlock, 0, stream, c);
}

}  // namespace orrery::kernels::cuda
