// This file runs norms on the CPU: of whole rows, of heads, and of rows whose columns are split over several ranks.
#include <optional>
#include <vector>

#include "exec/host/host_call.h"
#include "kernels/cpu/norm.h"

namespace orrery {
namespace {

using kernels::columns_of;
using kernels::matrix;

// The memory for the gradient of a norm's weights; for frozen weights, scratch memory that is never read.
class NormGradient {
 public:
  NormGradient(const CpuCall& c, std::size_t index, std::int64_t columns) {
    if (index < c.gradients.size()) {
      const Argument& a = c.gradients[index];
      kept_.emplace(a.data, a.bytes / a.width, a.width, c.rank.format16(), Values::Mode::update);
    } else {
      unread_.resize(static_cast<std::size_t>(columns));
    }
  }
  float* data() const { return kept_ ? kept_->data() : unread_.data(); }

 private:
  std::optional<Values> kept_;
  mutable std::vector<float> unread_;
};

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

static void run_norm_in_pieces(const CpuCall& c, const Normalize& n) {
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

// Normalizes the query heads, then the key heads, with separate weights for the two; statistics are per head.
static void head_norms(const CpuCall& c, const Normalize& n) {
  const std::int64_t tokens = c.batch() * c.sequence(), heads = n.rows / tokens, d = n.columns;
  const std::int64_t queries = c.model().heads / c.head_parts();
  const bool forward = n.direction == Direction::forward;
  const std::size_t per_kind = n.layernorm ? 2 : 1;
  const auto rows = [&](const Values& v, const Argument& a, std::int64_t head) {
    const std::int64_t columns = a.bytes / (tokens * c.rank.plan.element_bytes);
    return columns_of(matrix(v.data(), tokens, columns), head * d, d);
  };
  const auto size = [&](const Argument& a) { return a.bytes / c.rank.plan.element_bytes; };
  const Argument& result = forward ? c.writes[0] : c.updates[0];
  const Values x = c.read(c.reads[0], size(c.reads[0]));
  const Values dy = c.read(c.reads[forward ? 0 : 2], size(c.reads[forward ? 0 : 2]));
  const Values y = forward ? c.write(result, size(result)) : c.update(result, size(result));
  float* statistics = CpuCall::floats(forward ? c.writes[1] : c.reads[1]);
  for (std::int64_t h = 0; h < heads; ++h) {
    const std::size_t kind = h < queries ? 0 : per_kind;
    const kernels::NormStatistics saved = {statistics + h * tokens, statistics + n.rows + h * tokens};
    const auto in = rows(x, c.reads[0], h), out = rows(y, result, h);
    const Values w = c.weight(c.weights[kind]);
    if (forward && n.layernorm) {
      const Values b = c.weight(c.weights[kind + 1]);
      kernels::layer_norm(in, w.data(), b.data(), kNormEpsilon, out, saved);
    } else if (forward) {
      kernels::rms_norm(in, w.data(), kNormEpsilon, out, saved);
    } else if (n.layernorm) {
      const NormGradient dw(c, kind, d), db(c, kind + 1, d);
      kernels::layer_norm_gradient(in, saved, rows(dy, c.reads[2], h), w.data(), out, dw.data(), db.data());
    } else {
      const NormGradient dw(c, kind, d);
      kernels::rms_norm_gradient(in, saved, rows(dy, c.reads[2], h), w.data(), out, dw.data());
    }
  }
}

void run_norm(const CpuCall& c, const Normalize& n) {
  // Two sets of weights mean two norms in one op (query-key norm): one of the query heads, one of the key heads.
  if (c.weights.size() > (n.layernorm ? 2 : 1)) return head_norms(c, n);
  if (n.part != Normalize::Part::whole) return run_norm_in_pieces(c, n);
  const auto rows = [&](const Values& v) { return matrix(v.data(), n.rows, n.columns); };
  const Values x = c.read(c.reads[0], n.rows * n.columns), w = c.weight(c.weights[0]);
  const bool forward = n.direction == Direction::forward;
  float* statistics = CpuCall::floats(forward ? c.writes[1] : c.reads[1]);
  const kernels::NormStatistics saved = {statistics, statistics + n.rows};
  const Values y = c.write(c.writes[0], n.rows * n.columns);
  if (forward && n.layernorm) {
    const Values b = c.weight(c.weights[1]);
    return kernels::layer_norm(rows(x), w.data(), b.data(), kNormEpsilon, rows(y), saved);
  }
  if (forward) return kernels::rms_norm(rows(x), w.data(), kNormEpsilon, rows(y), saved);
  const Values dy = c.read(c.reads[2], n.rows * n.columns);
  const NormGradient dw(c, 0, n.columns);
  if (!n.layernorm) return kernels::rms_norm_gradient(rows(x), saved, rows(dy), w.data(), rows(y), dw.data());
  const NormGradient db(c, 1, n.columns);
  kernels::layer_norm_gradient(rows(x), saved, rows(dy), w.data(), rows(y), dw.data(), db.data());
}

}  // namespace orrery
