// This file runs, on the CPU, norms of rows whose columns are split over several ranks.
#include <optional>

#include "exec/host/host_call.h"
#include "kernels/cpu/norm.h"

namespace orrery {
namespace {

using kernels::matrix;

// Returns a view of the sums that a rank computes over its columns of every row: two sums per row for layer norm, one
// for RMS norm.
kernels::NormStatistics of_rows(const Argument& a, const Normalize& n) {
  float* first = CpuCall::floats(a);
  return {first, n.layernorm ? first + n.rows : nullptr};
}

void finish_forward(const CpuCall& c, const Normalize& n, kernels::Matrix<float> x) {
  if (n.part == Normalize::Part::sums) return kernels::norm_sums(x, of_rows(c.writes[0], n));
  const Values w = c.weight(c.weights[0]), b = c.weight(c.weights.back());
  const Values y = c.write(c.writes[0], n.rows * n.columns);
  kernels::norm_from_sums(x, n.pieces * n.columns, w.data(), n.layernorm ? b.data() : nullptr, kNormEpsilon,
                          matrix(y.data(), n.rows, n.columns), of_rows(c.updates[0], n));
}

}  // namespace

void run_norm_in_pieces(const CpuCall& c, const Normalize& n) {
  const Values values = c.read(c.reads[0], n.rows * n.columns);
  const auto x = matrix(values.data(), n.rows, n.columns);
  if (n.direction == Direction::forward) return finish_forward(c, n, x);
  const kernels::NormStatistics saved = of_rows(c.reads[1], n);
  const Values w = c.weight(c.weights[0]), gradient = c.read(c.reads[2], n.rows * n.columns);
  const auto dy = matrix<const float>(gradient.data(), n.rows, n.columns);
  if (n.part == Normalize::Part::sums) {
    const Values dw = c.gradient(c.gradients[0]);
    std::optional<Values> db;
    if (n.layernorm) {
      const Argument& a = c.gradients[1];
      db.emplace(a.data, a.bytes / a.width, a.width, c.rank.format16(), Values::Mode::update);
    }
    return kernels::norm_gradient_sums(x, saved, dy, w.data(), of_rows(c.writes[0], n), dw.data(),
                                       db ? db->data() : nullptr);
  }
  const Values dx = c.write(c.writes[0], n.rows * n.columns);
  kernels::norm_gradient_from_sums(x, n.pieces * n.columns, saved, dy, w.data(), of_rows(c.reads[3], n),
                                   matrix(dx.data(), n.rows, n.columns));
}

}  // namespace orrery
