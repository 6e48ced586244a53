// This file runs matrix products on the CPU.
#include <cmath>
#include <optional>

#include "exec/host/host_call.h"
#include "kernels/cpu/gemm.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::heads_of;
using kernels::matrix;

struct PackedShape {
  std::int64_t batch = 0, rows = 0, heads = 0, kv_heads = 0, head_dim = 0;
};

float scale_of(std::int64_t head_dim) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim))); }

// Returns the columns of the op's tile (number g.tile of g.tiles equal parts of a linear layer's outputs) in a matrix
// that has the columns of all tiles one after another.
kernels::Matrix<float> tile_of(const Values& v, const Gemm& g, std::int64_t rows, std::int64_t columns) {
  return columns_of(matrix(v.data(), rows, g.tiles * columns), g.tile * columns, columns);
}

// Consecutive rows of a matrix product: the first row in the input, the first row in the output, and the number of
// rows.
struct RowRun {
  std::int64_t from = 0, to = 0, count = 0;
};

// Returns the ranges of rows of the product that this op computes. local: number of rows that each member of the
// tensor-parallel group has.
std::vector<RowRun> row_runs(const GroupPosition& seat, const Gemm& g, std::int64_t local) {
  using Rows = Gemm::Rows;
  const std::int64_t behind = seat.index + 1;
  switch (g.rows) {
    case Rows::all:
      return {{0, 0, g.m}};
    case Rows::member: {
      const std::int64_t place = (seat.index - g.piece + seat.size) % seat.size * g.m;
      // piece 0 of the input's rows is this rank's own, and is read from the beginning of a separate buffer
      return {{g.piece == 0 ? 0 : place, place, g.m}};
    }
    case Rows::before:
      return {{0, 0, seat.index * local}};
    case Rows::behind:
      return {{behind * local, behind * local, (seat.size - behind) * local}};
    case Rows::others:
      return {{0, 0, seat.index * local}, {behind * local, behind * local, (seat.size - behind) * local}};
    case Rows::runs:
      break;
  }
  std::vector<RowRun> runs;
  const std::int64_t count = g.m / seat.size;
  for (std::int64_t member = 0; member < seat.size; ++member)
    runs.push_back({(member * g.pieces + g.piece) * count, g.piece * g.m + member * count, count});
  return runs;
}

Argument rows_from(const CpuCall& c, Argument a, std::int64_t first, std::int64_t columns) {
  a.data += first * columns * c.rank.plan.element_bytes;
  return a;
}

// Whether a weight is stored in NF4, or training rounds it; products then read what it was converted to, which lies in
// a buffer of the layer.
bool is_converted(const CpuCall& c, const Argument& weight) {
  const LocalParameter& p = c.parameter(weight);
  return p.nf4 || (!p.frozen && p.format.narrow());
}

void run_rows(const CpuCall& c, Gemm g, const RowRun& run) {
  const bool input = g.role == Gemm::Role::input_gradient;
  g.m = run.count;
  const std::int64_t columns = g.k * (input ? g.tiles : 1);
  const Values x = c.read(rows_from(c, c.reads[0], run.from, columns), g.m * columns);
  const bool panel = c.weights.empty();  // whether the weight is a block of rows that was received from another rank
  const bool apart = panel || is_converted(c, c.weights[0]);
  const Values w = apart ? c.read(c.reads[1], g.n * g.k) : c.weight(c.weights[0]);
  const Argument& to = c.writes.empty() ? c.updates[0] : c.writes[0];
  // If a linear layer's outputs are computed in several tiles (ranges of columns), y also holds the columns of the
  // other tiles, which must stay unchanged.
  const auto mode = g.tiles > 1 || g.accumulate ? Values::Mode::update : Values::Mode::write;
  const std::int64_t results = g.n * (input ? 1 : g.tiles);
  const Values y = c.view(rows_from(c, to, run.to, results), g.m * results, mode);
  if (input) {
    kernels::multiply({}, 1, tile_of(x, g, g.m, g.k), matrix(w.data(), g.k, g.n), g.accumulate ? 1 : 0,
                      matrix(y.data(), g.m, g.n));
    return;
  }
  if (panel) {
    return kernels::multiply({.b = true}, 1, matrix(x.data(), g.m, g.k), matrix(w.data(), g.n, g.k),
                             g.accumulate ? 1.0F : 0.0F, matrix(y.data(), g.m, g.n));
  }
  if (g.accumulate) {
    return kernels::multiply({.b = true}, 1, matrix(x.data(), g.m, g.k), matrix(w.data(), g.n, g.k), 1,
                             matrix(y.data(), g.m, g.n));
  }
  std::optional<Values> bias;
  if (c.weights.size() > 1) {
    const Argument& b = c.weights[1];
    bias.emplace(b.data, b.bytes / b.width, b.width, c.rank.format16(), Values::Mode::read);
  }
  kernels::linear(matrix(x.data(), g.m, g.k), matrix(w.data(), g.n, g.k), bias ? bias->data() + g.tile * g.n : nullptr,
                  tile_of(y, g, g.m, g.n));
}

void run_linear(const CpuCall& c, const Gemm& g) {
  const GroupPosition& seat = c.rank.position_in(Dimension::tensor);
  for (const RowRun& run : row_runs(seat, g, c.rows_in(c.reads[0], g.k) / seat.size)) {
    if (run.count > 0) run_rows(c, g, run);
  }
}

void run_weight_gradient(const CpuCall& c, const Gemm& g) {
  const Values x = c.read(c.reads[0], g.k * g.n);
  const Values dy = c.read(c.reads[1], g.k * g.m * g.tiles);
  const bool flat = !c.gradients.empty();
  const auto block = [&] { return g.accumulate ? c.update(c.updates[0], g.m * g.n) : c.write(c.writes[0], g.m * g.n); };
  const Values dw = flat ? c.gradient(c.gradients[0]) : block();
  kernels::linear_weight_gradient(tile_of(dy, g, g.k, g.m), matrix(x.data(), g.k, g.n), g.accumulate,
                                  matrix(dw.data(), g.m, g.n));
}

// Returns a view of heads [first, first + heads) of a packed buffer: of normalized queries and keys, or of the output
// of the query-key-value projection.
kernels::Heads<float> heads_in(const Values& v, const PackedShape& s, const Argument& a, const CpuCall& c,
                               std::int64_t first, std::int64_t heads) {
  const std::int64_t columns = a.bytes / (s.rows * c.rank.plan.element_bytes);
  return heads_of(matrix(v.data(), s.rows, columns), s.batch, first, heads, s.head_dim);
}

// Runs one of the matrix products of unfused attention, or of its backward pass. The op's role says which one; the
// planner has set its shapes and operands.
void run_head_product(const CpuCall& c, const Gemm& g) {
  using Role = Gemm::Role;
  const bool pairs = g.role == Role::scores || g.role == Role::probability_gradient;
  const bool by_key = g.role == Role::value_gradient || g.role == Role::key_gradient;
  const std::int64_t samples = g.batch / g.heads, queries = by_key ? g.k : g.m, d = pairs ? g.k : g.n;
  const PackedShape shape = {samples, samples * queries, g.heads, g.kv_heads, d};
  const std::int64_t flat = shape.rows * g.heads * d, weights = g.batch * queries * (pairs ? g.n : by_key ? g.m : g.k);
  const auto size = [&](const Argument& a) { return a.bytes / c.rank.plan.element_bytes; };
  const auto of_queries = [&](const Values& v) {
    return heads_of(matrix(v.data(), shape.rows, g.heads * d), samples, 0, g.heads, d);
  };
  const auto q = [&](const Values& v, const Argument& a) { return heads_in(v, shape, a, c, 0, g.heads); };
  const auto k = [&](const Values& v, const Argument& a) { return heads_in(v, shape, a, c, g.heads, g.kv_heads); };
  const auto v = [&](const Values& x, const Argument& a) {
    return heads_in(x, shape, a, c, g.heads + g.kv_heads, g.kv_heads);
  };
  const float scale = scale_of(d);
  // The last operand is the packed buffer of q, k and v; in the op that computes the value gradient, it is the gradient
  // of attention's output instead.
  const Argument& in = c.reads.back();
  const Argument& out = c.updates.empty() ? c.writes[0] : c.updates[0];
  const Values first = c.read(c.reads[0], c.reads.size() == 1 ? size(in) : pairs ? flat : weights);
  const Values second = c.read(in, g.role == Role::value_gradient ? flat : size(in));
  // Gradients of queries, keys and values share one packed buffer, so an op that writes one of them must leave the
  // other parts unchanged.
  const bool part = by_key || g.role == Role::query_gradient;
  const Values result = part ? c.update(out, size(out)) : c.write(out, pairs ? weights : flat);
  switch (g.role) {
    case Role::scores:
      return kernels::head_scores(q(first, in), k(first, in), scale, result.data());
    case Role::values:
      return kernels::head_values(first.data(), v(second, in), 1, of_queries(result));
    case Role::value_gradient:
      return kernels::head_key_gradient(first.data(), of_queries(second), 1, v(result, out));
    case Role::probability_gradient:
      return kernels::head_scores(of_queries(first), v(second, in), 1, result.data());
    case Role::query_gradient:
      return kernels::head_values(first.data(), k(second, in), scale, q(result, out));
    default:
      return kernels::head_key_gradient(first.data(), q(second, in), scale, k(result, out));
  }
}

}  // namespace

void run_product(const CpuCall& c, const Gemm& g) {
  if (g.role == Gemm::Role::weight_gradient) return run_weight_gradient(c, g);
  if (g.role == Gemm::Role::output || g.role == Gemm::Role::input_gradient) return run_linear(c, g);
  run_head_product(c, g);
}

}  // namespace orrery
