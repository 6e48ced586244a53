// Matrix products and attention on the CPU.
#include <cmath>

#include "exec/cpu_call.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"

namespace orrery {
namespace {

using kernels::heads_of;
using kernels::matrix;

// A packed buffer of queries, keys and values, or of their gradients, by heads.
struct Packed {
  kernels::Heads<float> q, k, v;
};

struct PackedShape {
  std::int64_t batch = 0, rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_dim; }
};

Packed unpack(float* data, const PackedShape& s) {
  const auto m = matrix(data, s.rows, s.columns());
  return {heads_of(m, s.batch, 0, s.heads, s.head_dim), heads_of(m, s.batch, s.heads, s.kv_heads, s.head_dim),
          heads_of(m, s.batch, s.heads + s.kv_heads, s.kv_heads, s.head_dim)};
}

float scale_of(std::int64_t head_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }

void run_linear(const CpuCall& c, const Gemm& g) {
  const Values x = c.read(c.reads[0], g.m * g.k);
  const Values w = c.weight(c.weights[0]);
  const Values y = c.write(c.writes[0], g.m * g.n);
  if (g.role == Gemm::Role::input_gradient) {
    kernels::linear_input_gradient(matrix(x.data(), g.m, g.k), matrix(w.data(), g.k, g.n), matrix(y.data(), g.m, g.n));
    return;
  }
  const bool biased = c.weights.size() > 1;
  const Values bias = c.weight(c.weights[biased ? 1 : 0]);
  kernels::linear(matrix(x.data(), g.m, g.k), matrix(w.data(), g.n, g.k), biased ? bias.data() : nullptr,
                  matrix(y.data(), g.m, g.n));
}

void run_weight_gradient(const CpuCall& c, const Gemm& g) {
  const Values x = c.read(c.reads[0], g.k * g.n);
  const Values dy = c.read(c.reads[1], g.k * g.m);
  const bool flat = !c.gradients.empty();
  const Values dw = flat ? c.gradient(c.gradients[0]) : c.write(c.writes[0], g.m * g.n);
  kernels::linear_weight_gradient(matrix(dy.data(), g.k, g.m), matrix(x.data(), g.k, g.n), g.accumulate,
                                  matrix(dw.data(), g.m, g.n));
}

// The products of attention that is written out; shapes as layers record them.
void run_head_product(const CpuCall& c, const Gemm& g) {
  using Role = Gemm::Role;
  const bool pairs = g.role == Role::scores || g.role == Role::probability_gradient;
  const bool by_key = g.role == Role::value_gradient || g.role == Role::key_gradient;
  const std::int64_t samples = g.batch / g.heads;
  const std::int64_t queries = by_key ? g.k : g.m;
  const std::int64_t d = pairs ? g.k : g.n;
  const PackedShape shape = {samples, samples * queries, g.heads, g.kv_heads, d};
  const std::int64_t packed = shape.rows * shape.columns(), flat = shape.rows * g.heads * d;
  const std::int64_t weights = g.batch * queries * (pairs ? g.n : by_key ? g.m : g.k);
  const auto of_queries = [&](float* data) {
    return heads_of(matrix(data, shape.rows, g.heads * d), samples, 0, g.heads, d);
  };
  const float scale = scale_of(d);
  switch (g.role) {
    case Role::scores: {
      const Values qkv = c.read(c.reads[0], packed), s = c.write(c.writes[0], weights);
      const Packed p = unpack(qkv.data(), shape);
      return kernels::head_scores(p.q, p.k, scale, s.data());
    }
    case Role::values: {
      const Values w = c.read(c.reads[0], weights), qkv = c.read(c.reads[1], packed), y = c.write(c.writes[0], flat);
      return kernels::head_values(w.data(), unpack(qkv.data(), shape).v, 1, of_queries(y.data()));
    }
    case Role::value_gradient: {
      const Values w = c.read(c.reads[0], weights), dy = c.read(c.reads[1], flat), g3 = c.write(c.writes[0], packed);
      return kernels::head_key_gradient(w.data(), of_queries(dy.data()), 1, unpack(g3.data(), shape).v);
    }
    case Role::probability_gradient: {
      const Values dy = c.read(c.reads[0], flat), qkv = c.read(c.reads[1], packed), dp = c.write(c.writes[0], weights);
      return kernels::head_scores(of_queries(dy.data()), unpack(qkv.data(), shape).v, 1, dp.data());
    }
    case Role::query_gradient: {
      const Values ds = c.read(c.reads[0], weights), qkv = c.read(c.reads[1], packed);
      const Values g3 = c.update(c.updates[0], packed);
      return kernels::head_values(ds.data(), unpack(qkv.data(), shape).k, scale, unpack(g3.data(), shape).q);
    }
    default: {
      const Values ds = c.read(c.reads[0], weights), qkv = c.read(c.reads[1], packed);
      const Values g3 = c.update(c.updates[0], packed);
      return kernels::head_key_gradient(ds.data(), unpack(qkv.data(), shape).q, scale, unpack(g3.data(), shape).k);
    }
  }
}

}  // namespace

void run_product(const CpuCall& c, const Gemm& g) {
  if (g.role == Gemm::Role::weight_gradient) return run_weight_gradient(c, g);
  if (g.role == Gemm::Role::output || g.role == Gemm::Role::input_gradient) return run_linear(c, g);
  run_head_product(c, g);
}

void run_attention(const CpuCall& c, const FlashAttention& a) {
  const PackedShape shape = {a.batch, a.batch * a.query, a.heads, a.kv_heads, a.head_dim};
  const std::int64_t packed = shape.rows * shape.columns(), flat = shape.rows * a.heads * a.head_dim;
  const auto of_queries = [&](float* data) {
    return heads_of(matrix(data, shape.rows, a.heads * a.head_dim), a.batch, 0, a.heads, a.head_dim);
  };
  const kernels::CausalMask mask = {.window = a.window};
  const float scale = scale_of(a.head_dim);
  const Values qkv = c.read(c.reads[0], packed);
  const Packed p = unpack(qkv.data(), shape);
  if (a.direction == Direction::forward) {
    const Values y = c.write(c.writes[0], flat);
    return kernels::attention(p.q, p.k, p.v, scale, mask, of_queries(y.data()), CpuCall::floats(c.writes[1]));
  }
  const Values y = c.read(c.reads[1], flat), dy = c.read(c.reads[3], flat), dqkv = c.write(c.writes[0], packed);
  const Packed g = unpack(dqkv.data(), shape);
  kernels::attention_gradient({p.q, p.k, p.v, of_queries(y.data()), CpuCall::floats(c.reads[2])}, of_queries(dy.data()),
                              scale, mask, g.q, g.k, g.v);
}

}  // namespace orrery
