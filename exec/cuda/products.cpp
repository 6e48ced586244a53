// This file runs matrix products and attention on a GPU.
#include <cmath>

#include "exec/cuda/call.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/products.h"

namespace orrery::cuda {
namespace {

struct PackedShape {
  std::int64_t batch = 0, rows = 0, heads = 0, kv_heads = 0, head_dim = 0;

  std::int64_t columns() const { return (heads + 2 * kv_heads) * head_dim; }
  std::int64_t normed_columns() const { return (heads + kv_heads) * head_dim; }
};

// Queries, keys and values, or their gradients, as views (batch, rows, heads, head_dim).
struct Packed {
  gpu::Heads q, k, v;
};

// Finds queries, keys and values, which are adjacent columns in the output of the query-key-value projection. With head
// norms (QK norm), only the values are taken from there, since normalized queries and keys are in a buffer of their
// own, the first operand.
Packed packed(const CudaCall& c, const PackedShape& s, const std::vector<Argument>& at, bool normed) {
  const gpu::Matrix all = c.matrix(at[normed ? 1 : 0], s.rows, s.columns());
  const gpu::Matrix qk = normed ? c.matrix(at[0], s.rows, s.normed_columns()) : all;
  return {heads_of(qk, s.batch, 0, s.heads, s.head_dim), heads_of(qk, s.batch, s.heads, s.kv_heads, s.head_dim),
          heads_of(all, s.batch, s.heads + s.kv_heads, s.kv_heads, s.head_dim)};
}

float scale_of(std::int64_t head_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }

// Returns the columns of the op's tile (number g.tile of g.tiles equal parts of a linear layer's outputs) in a matrix
// that has the columns of all tiles one after another.
gpu::Matrix tile_of(const CudaCall& c, const Argument& a, const Gemm& g, std::int64_t rows, std::int64_t columns) {
  return columns_of(c.matrix(a, rows, g.tiles * columns), g.tile * columns, columns);
}

void run_linear(const CudaCall& c, const Gemm& g) {
  gpu::Products& products = c.gpu_state.products();
  const Argument& to = c.writes.empty() ? c.updates[0] : c.writes[0];
  if (g.role == Gemm::Role::input_gradient) {
    return products.multiply({.a = tile_of(c, c.reads[0], g, g.m, g.k),
                              .b = CudaCall::weight(c.weights[0], g.k, g.n),
                              .beta = g.accumulate ? 1.0F : 0.0F,
                              .c = c.matrix(to, g.m, g.n)},
                             c.stream);
  }
  gpu::Array bias;
  if (c.weights.size() > 1) bias = CudaCall::flat(c.weights[1], g.tile * g.n);
  products.linear(c.matrix(c.reads[0], g.m, g.k), CudaCall::weight(c.weights[0], g.n, g.k), bias,
                  tile_of(c, to, g, g.m, g.n), c.stream);
}

void run_weight_gradient(const CudaCall& c, const Gemm& g) {
  const gpu::Matrix x = c.matrix(c.reads[0], g.k, g.n), dy = tile_of(c, c.reads[1], g, g.k, g.m);
  const gpu::Matrix dw =
      c.gradients.empty() ? c.matrix(c.writes[0], g.m, g.n) : CudaCall::weight(c.gradients[0], g.m, g.n);
  c.gpu_state.products().linear_weight_gradient(dy, x, g.accumulate, dw, c.stream);
}

// One of the matrix products of unfused attention or of its backward pass. The op's role says which one; the planner
// has set its shapes and operands.
class HeadProduct {
 public:
  HeadProduct(const CudaCall& c, const Gemm& g) : c_(c), g_(g) {
    using Role = Gemm::Role;
    const bool pairs = g.role == Role::scores || g.role == Role::probability_gradient;
    const bool by_key = g.role == Role::value_gradient || g.role == Role::key_gradient;
    const std::int64_t samples = g.batch / g.heads, queries = by_key ? g.k : g.m;
    shape_ = {samples, samples * queries, g.heads, g.kv_heads, pairs ? g.k : g.n};
  }

  void run() const {
    using Role = Gemm::Role;
    gpu::Products& p = c_.gpu_state.products();
    const float scale = scale_of(shape_.head_dim);
    const Argument &first = c_.reads[0], &in = c_.reads.back();
    const Argument& out = c_.updates.empty() ? c_.writes[0] : c_.updates[0];
    const gpu::Array weights = c_.activation(first), result = c_.activation(out);
    switch (g_.role) {
      case Role::scores:
        return p.head_scores(q(in), k(in), scale, result, c_.stream);
      case Role::values:
        return p.head_values(weights, v(in), 1, of_queries(out), c_.stream);
      case Role::value_gradient:
        return p.head_key_gradient(weights, of_queries(in), 1, v(out), c_.stream);
      case Role::probability_gradient:
        return p.head_scores(of_queries(first), v(in), 1, result, c_.stream);
      case Role::query_gradient:
        return p.head_values(weights, k(in), scale, q(out), c_.stream);
      default:
        return p.head_key_gradient(weights, q(in), scale, k(out), c_.stream);
    }
  }

 private:
  gpu::Heads of_queries(const Argument& a) const {
    const std::int64_t columns = shape_.heads * shape_.head_dim;
    return heads_of(c_.matrix(a, shape_.rows, columns), shape_.batch, 0, shape_.heads, shape_.head_dim);
  }
  // Returns a view of some heads in a packed buffer, which holds either normalized queries and keys or the output of
  // the query-key-value projection.
  gpu::Heads in_packed(const Argument& a, std::int64_t first, std::int64_t heads) const {
    return heads_of(c_.matrix(a, shape_.rows, c_.columns(a, shape_.rows)), shape_.batch, first, heads, shape_.head_dim);
  }
  gpu::Heads q(const Argument& a) const { return in_packed(a, 0, shape_.heads); }
  gpu::Heads k(const Argument& a) const { return in_packed(a, shape_.heads, shape_.kv_heads); }
  gpu::Heads v(const Argument& a) const { return in_packed(a, shape_.heads + shape_.kv_heads, shape_.kv_heads); }

  const CudaCall& c_;
  const Gemm& g_;
  PackedShape shape_;
};

}  // namespace

void run_product(const CudaCall& c, const Gemm& g) {
  if (g.role == Gemm::Role::weight_gradient) return run_weight_gradient(c, g);
  if (g.role == Gemm::Role::output || g.role == Gemm::Role::input_gradient) return run_linear(c, g);
  HeadProduct(c, g).run();
}

void run_attention(const CudaCall& c, const FlashAttention& a) {
  const PackedShape shape = {a.batch, a.batch * a.query, a.heads, a.kv_heads, a.head_dim};
  const auto of_queries = [&](const Argument& x) {
    return heads_of(c.matrix(x, shape.rows, a.heads * a.head_dim), a.batch, 0, a.heads, a.head_dim);
  };
  const kernels::CausalMask mask = {.window = a.window};
  const float scale = scale_of(a.head_dim);
  // next: number of operands that the forward pass reads too. After them the backward pass reads three: the output y,
  // its softmax statistics, and its gradient.
  const std::size_t next = c.reads.size() - (a.direction == Direction::forward ? 0 : 3);
  const bool normed = next > 1;
  const Packed p = packed(c, shape, c.reads, normed);
  if (a.direction == Direction::forward)
    return gpu::attention(p.q, p.k, p.v, scale, mask, of_queries(c.writes[0]), CudaCall::floats(c.writes[1]), c.stream);
  const gpu::AttentionSaved saved = {p.q, p.k, p.v, of_queries(c.reads[next]), CudaCall::floats(c.reads[next + 1])};
  const Packed d = packed(c, shape, c.writes, normed);
  gpu::attention_gradient(saved, of_queries(c.reads[next + 2]), scale, mask, d.q, d.k, d.v,
                          c.workspace(gpu::attention_gradient_workspace(p.q, p.k)), c.stream);
}

// Copies columns of heads between a packed projection and a buffer with one part per member of the context-parallel
// group, (members, rows, ...). check_executable() refuses key/value heads that several members need.
void run_move_heads(const CudaCall& c, const MoveHeads& m) {
  const bool back = m.direction == Direction::backward;
  const auto& packed = back ? (c.writes.empty() ? c.updates : c.writes) : c.reads;
  const Argument& travels = back ? c.reads[0] : c.writes[0];
  const std::int64_t mine = m.member_heads(), kv = m.member_kv_heads();
  const auto move = [&](const Argument& a, std::int64_t at, std::int64_t member, std::int64_t in_part, std::int64_t n) {
    if (n == 0) return;
    const gpu::Matrix all = c.matrix(a, m.rows, c.columns(a, m.rows));
    const gpu::Matrix parts = c.matrix(travels, m.members * m.rows, m.columns());
    const gpu::Matrix in_all = columns_of(all, at * m.head_dim, n * m.head_dim);
    const gpu::Matrix part = columns_of(rows_of(parts, member * m.rows, m.rows), in_part * m.head_dim, in_all.columns);
    const gpu::Matrix &from = back ? part : in_all, &to = back ? in_all : part;
    const auto bytes = [&](std::int64_t n_elements) {
      return static_cast<std::size_t>(n_elements * c.rank.plan.element_bytes);
    };
    ORRERY_CHECK_CUDA(cudaMemcpy2DAsync(to.data, bytes(to.stride), from.data, bytes(from.stride), bytes(from.columns),
                                        static_cast<std::size_t>(m.rows), cudaMemcpyDeviceToDevice, c.stream));
  };
  for (std::int64_t i = 0; i < m.members; ++i) {
    const std::int64_t first_kv = m.heads + i * m.kv_heads / m.members;
    if (m.queries) move(packed.front(), i * mine, i, 0, mine);
    move(packed.front(), first_kv, i, mine, kv);
    move(packed.back(), first_kv + m.kv_heads, i, mine + kv, kv);
  }
}

}  // namespace orrery::cuda
