#include "exec/cpu/launch.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "exec/host/host_call.h"
#include "exec/host/place_copies.h"
#include "kernels/cpu/activation.h"
#include "kernels/cpu/cross_entropy.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/embedding.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/residual.h"
#include "kernels/cpu/softmax.h"
#include "models/base/error.h"
#include "models/layers/blocks.h"

namespace orrery {
namespace {

using kernels::matrix;

struct CpuKernels {
  const CpuCall& c;

  // Throws an Error that names an op without a CPU kernel; check_executable() already refuses plans with such ops.
  [[noreturn]] void no_kernel() const { throw Error(fmt::format("{}: CPU ranks have no kernel for it", c.op.name), 1); }

  void operator()(const Gemm& g) const { run_product(c, g); }
  void operator()(const FlashAttention& a) const { run_attention(c, a); }
  void operator()(const MoveHeads& m) const { run_move_heads(c, m); }

  void operator()(const Softmax& s) const {
    const std::int64_t n = s.rows * s.columns;
    const Values in = c.read(c.reads[0], n);
    if (s.direction == Direction::forward) {
      const Values out = c.write(c.writes[0], n);
      // number of queries of a sample: all tokens of the sequence, also under context parallelism
      const std::int64_t queries = s.columns;
      return kernels::masked_softmax(matrix<const float>(in.data(), s.rows, s.columns), queries, {.window = s.window},
                                     matrix(out.data(), s.rows, s.columns));
    }
    const Values gradient = c.update(c.updates[0], n);
    kernels::softmax_gradient(matrix<const float>(in.data(), s.rows, s.columns),
                              matrix(gradient.data(), s.rows, s.columns));
  }

  void operator()(const Normalize& n) const { run_norm(c, n); }

  void operator()(const Rotary& r) const {
    const std::int64_t columns = c.updates[0].bytes / (r.rows * c.rank.plan.element_bytes);
    const Values x = c.update(c.updates[0], r.rows * columns);
    const auto heads = columns_of(matrix(x.data(), r.rows, columns), 0, r.columns);
    c.for_documents(r.rows, [&](std::int64_t row, std::int64_t count, std::int64_t, std::int64_t position) {
      kernels::rotate(c.rotary(), {count, position}, r.direction == Direction::backward, rows_of(heads, row, count));
    });
  }
  void operator()(const LatentHeads& l) const { run_latent_heads(c, l); }
  void operator()(const Convolution& w) const { run_convolution(c, w); }
  void operator()(const Scan& s) const { run_scan(c, s); }
  void operator()(const GatedNorm& n) const { run_gated_norm(c, n); }
  void operator()(const IndexScores& s) const { run_index_scores(c, s); }
  void operator()(const Pool&) const { no_kernel(); }
  void operator()(const MixStreams&) const { no_kernel(); }

  void operator()(const Split& s) const {
    const auto both = [&](const Values& v) { return matrix(v.data(), s.rows, s.first + s.second); };
    const auto part = [&](const Values& v, std::int64_t columns) { return matrix(v.data(), s.rows, columns); };
    const bool forward = s.direction == Direction::forward;
    const auto& parts = forward ? c.writes : c.reads;
    const Values::Mode mode = forward ? Values::Mode::write : Values::Mode::read;
    const Argument& whole = forward ? c.reads[0] : c.writes[0];
    const Values x = c.view(whole, s.rows * (s.first + s.second), forward ? Values::Mode::read : Values::Mode::write);
    const Values first = c.view(parts[0], s.rows * s.first, mode), second = c.view(parts[1], s.rows * s.second, mode);
    const auto copy = [&](const kernels::Matrix<float>& in_whole, const kernels::Matrix<float>& in_part) {
      forward ? kernels::copy(in_whole, in_part) : kernels::copy(in_part, in_whole);
    };
    copy(columns_of(both(x), 0, s.first), part(first, s.first));
    copy(columns_of(both(x), s.first, s.second), part(second, s.second));
  }

  static float limit_of(const Activation& a) { return static_cast<float>(a.limit); }

  void operator()(const Activation& a) const {
    const std::int64_t wider = a.columns * (a.gated ? 2 : 1), rows = c.rows_in(c.reads[0], wider);
    const auto wide = [&](const Values& v) { return matrix(v.data(), rows, wider); };
    const auto narrow = [&](const Values& v) { return matrix(v.data(), rows, a.columns); };
    const Values x = c.read(c.reads[0], rows * wider);
    if (a.direction == Direction::forward) {
      const Values y = c.write(c.writes[0], rows * a.columns);
      a.gated ? kernels::swiglu(wide(x), narrow(y), limit_of(a)) : kernels::gelu(wide(x), nullptr, narrow(y));
      if (a.weighted) kernels::scale_rows(CpuCall::floats(c.reads[1]), narrow(y));
      return;
    }
    const Values dy = c.read(c.reads[1], rows * a.columns), dx = c.write(c.writes[0], rows * wider);
    if (!a.weighted) return activation_gradient(a, wide(x), narrow(dy), wide(dx));
    std::vector<float> y(static_cast<std::size_t>(rows * a.columns)), scaled(dy.data(), dy.data() + rows * a.columns);
    const auto plain = matrix(y.data(), rows, a.columns), gradient = matrix(scaled.data(), rows, a.columns);
    a.gated ? kernels::swiglu(wide(x), plain, limit_of(a)) : kernels::gelu(wide(x), nullptr, plain);
    std::vector<float> products(static_cast<std::size_t>(rows));
    kernels::row_products(plain, narrow(dy), products.data());
    // Whether the backward pass of the experts' bias has already written a part of the routing weights' gradient.
    const bool adds = !c.updates.empty();
    float* dweights = CpuCall::floats(adds ? c.updates[0] : c.writes[1]);
    for (std::int64_t r = 0; r < rows; ++r) dweights[r] = products[r] + (adds ? dweights[r] : 0);
    kernels::scale_rows(CpuCall::floats(c.reads[2]), gradient);
    activation_gradient(a, wide(x), gradient, wide(dx));
  }

  static void activation_gradient(const Activation& a, kernels::Matrix<float> x, kernels::Matrix<float> dy,
                                  kernels::Matrix<float> dx) {
    a.gated ? kernels::swiglu_gradient(x, dy, dx, limit_of(a)) : kernels::gelu_gradient(x, nullptr, dy, dx);
  }

  void operator()(const Gate& g) const { run_gate(c, g); }
  void operator()(const Permute& p) const { run_permute(c, p); }
  void operator()(const SigmoidGate& g) const { run_sigmoid_gate(c, g); }
  void operator()(const SortChunks& s) const { run_sort(c, s); }
  void operator()(const GroupedGemm& g) const { run_grouped(c, g); }
  void operator()(const GroupedBias& b) const { run_grouped_bias(c, b); }
  void operator()(const CountTokens&) const {}  // does nothing: the issuing thread reads the token counts itself

  void operator()(const Residual& r) const {
    const double p = r.dropout ? c.model().dropout : 0;
    const std::int64_t n = r.rows * r.columns;
    if (r.direction == Direction::backward) return dropout_backward(r, p);
    const Values x = c.read(c.reads[0], n), branch = c.read(c.reads[r.residual ? 1 : 0], n);
    const Values y = c.write(c.writes[0], n);
    auto* mask = r.dropout ? reinterpret_cast<std::uint8_t*>(c.writes[1].data) : nullptr;
    if (r.dropout) {
      for (const MaskPart& m : mask_parts(c, r))
        kernels::dropout_mask(m.dropout, m.count, r.columns, mask + m.row * r.columns);
    }
    std::vector<float> bias;
    for (const Argument& b : c.weights) {
      const Values v = c.weight(b);
      bias.resize(static_cast<std::size_t>(r.columns));
      for (std::int64_t i = 0; i < r.columns; ++i) bias[i] += v.data()[i];
    }
    const kernels::Matrix<const float> base =
        r.residual ? matrix<const float>(x.data(), r.rows, r.columns) : kernels::Matrix<const float>{};
    kernels::residual(base, matrix<const float>(branch.data(), r.rows, r.columns), bias.empty() ? nullptr : bias.data(),
                      p, mask, matrix(y.data(), r.rows, r.columns));
  }

  void dropout_backward(const Residual& r, double p) const {
    const std::int64_t n = r.rows * r.columns;
    const auto apply = [&](const Values& dy, const Argument& mask, const Values& dx) {
      kernels::dropout_gradient(matrix<const float>(dy.data(), r.rows, r.columns), p,
                                reinterpret_cast<const std::uint8_t*>(mask.data), matrix(dx.data(), r.rows, r.columns));
    };
    if (!c.updates.empty()) {
      const Values both = c.update(c.updates[0], n);
      return apply(both, c.reads[0], both);
    }
    const Values dy = c.read(c.reads[0], n), dx = c.write(c.writes[0], n);
    apply(dy, c.reads[1], dx);
  }

  void operator()(const Add& a) const {
    const Values x = c.read(c.reads[0], a.elements), y = c.read(c.reads[1], a.elements);
    const Values sum = c.write(c.writes[0], a.elements);
    kernels::add(a.elements, x.data(), y.data(), sum.data());
  }

  void operator()(const BiasGradient& b) const {
    const Values dy = c.read(c.reads[0], b.rows * b.columns), db = c.gradient(c.gradients[0]);
    kernels::bias_gradient(matrix<const float>(dy.data(), b.rows, b.columns), db.data());
  }

  void operator()(const Embedding& e) const {
    if (e.positions) return positions(e);
    const std::int64_t first = e.panel >= 0 ? e.panel * e.vocab : first_token(c, e.over, e.vocab);
    if (e.direction == Direction::forward) {
      const Values table = table_of(e);
      const Values y = e.adds ? c.update(c.updates[0], e.rows * e.columns) : c.write(c.writes[0], e.rows * e.columns);
      return kernels::embed(CpuCall::integers(c.reads[0]), first, matrix<const float>(table.data(), e.vocab, e.columns),
                            matrix(y.data(), e.rows, e.columns), e.adds);
    }
    const Values dy = c.read(c.reads[0], e.rows * e.columns), table = c.table_gradient(e.vocab * e.columns);
    kernels::embed_gradient(CpuCall::integers(c.reads[1]), first, matrix<const float>(dy.data(), e.rows, e.columns),
                            matrix(table.data(), e.vocab, e.columns));
  }

  // Returns the embedding table: a weight of the op's own block, the weight of the embedding to which the output is
  // tied, or rows received from another rank.
  Values table_of(const Embedding& e) const {
    if (!c.weights.empty()) return c.weight(c.weights[0]);
    const Argument& last = c.reads.back();
    return last.operand.part == Part::tied ? c.weight(word_table(c, last)) : c.read(last, e.vocab * e.columns);
  }

  void positions(const Embedding& e) const {
    const Values in = c.read(c.reads[0], e.rows * e.columns);
    const bool forward = e.direction == Direction::forward;
    const Values table = forward ? c.weight(c.weights[0]) : c.table_gradient(e.vocab * e.columns);
    const auto rows = matrix(table.data(), e.vocab, e.columns);
    const auto of = [&](const Values& v, std::int64_t row, std::int64_t count) {
      return rows_of(matrix(v.data(), e.rows, e.columns), row, count);
    };
    if (!forward) {
      c.for_documents(e.rows, [&](std::int64_t row, std::int64_t count, std::int64_t, std::int64_t position) {
        kernels::positions_gradient(of(in, row, count), {count, position}, rows);
      });
      return;
    }
    const Values y = c.write(c.writes[0], e.rows * e.columns);
    c.for_documents(e.rows, [&](std::int64_t row, std::int64_t count, std::int64_t, std::int64_t position) {
      kernels::add_positions(of(in, row, count), rows, {count, position}, of(y, row, count));
    });
  }

  // Computes cross-entropy on 16-bit logits, without a cast to fp32: the stored logits are not changed, so backward
  // computes their exponentials again.
  void narrow(const CrossEntropy& e, kernels::VocabularyPart part) const {
    const std::int64_t n = e.rows * e.columns;
    const bool over = !c.updates.empty();
    const Argument& logits = over ? c.updates[0] : c.reads.back();
    std::vector<float> copy(static_cast<std::size_t>(n));
    {
      const Values stored = c.read(logits, n);
      std::copy_n(stored.data(), n, copy.data());
    }
    const auto all = matrix(copy.data(), e.rows, e.columns);
    if (e.part == CrossEntropy::Part::maximum) return kernels::row_maxima(all, part, CpuCall::floats(c.writes[0]));
    if (e.part == CrossEntropy::Part::exponent) {
      float* sums = CpuCall::floats(c.writes[0]);
      return kernels::row_exponents(all, part, CpuCall::floats(c.reads[0]), CpuCall::integers(c.reads[1]), sums,
                                    sums + e.rows);
    }
    std::vector<float> own(static_cast<std::size_t>(2 * e.rows));
    kernels::row_exponents(all, part, CpuCall::floats(c.reads[2]), CpuCall::integers(c.reads[0]), own.data(),
                           own.data() + e.rows);
    gradient(e, part, all, nullptr);
    const Values to = over ? c.update(logits, n) : c.write(c.writes[0], n);
    std::copy_n(copy.data(), n, to.data());
  }

  // Computes the gradient of cross-entropy of which each row is multiplied by a number of its own (Preference).
  void weighted_gradient(const CrossEntropy& e, kernels::VocabularyPart part, kernels::Matrix<float> exponents) const {
    const float* weights = CpuCall::floats(c.reads[2]);
    for (std::int64_t r = 0; r < e.rows; ++r)
      kernels::cross_entropy_gradient(rows_of(exponents, r, 1), part, CpuCall::floats(c.reads[1]) + r,
                                      CpuCall::integers(c.reads[0]) + r, c.loss_factor() * weights[r]);
  }

  void gradient(const CrossEntropy& e, kernels::VocabularyPart part, kernels::Matrix<float> exponents,
                const float* factors) const {
    if (e.weighted) return weighted_gradient(e, part, exponents);
    for (const PredictedRows& p : predicted_rows(e.rows, e.predictions, e.parts)) {
      const auto scale = static_cast<float>(c.loss_factor() * loss_weight(p, e.predictions));
      kernels::cross_entropy_gradient(rows_of(exponents, p.first, p.count), part, CpuCall::floats(c.reads[1]) + p.first,
                                      CpuCall::integers(c.reads[0]) + p.first, scale,
                                      factors ? factors + p.first : nullptr);
    }
  }

  void operator()(const CrossEntropy& e) const {
    const kernels::VocabularyPart part = {first_token(c, e.over, e.columns), c.rank.spec.model.vocab};
    if (e.narrow && e.part != CrossEntropy::Part::loss) return narrow(e, part);
    const auto logits = [&](const Argument& a) { return matrix(CpuCall::floats(a), e.rows, e.columns); };
    switch (e.part) {
      case CrossEntropy::Part::maximum:
        if (c.state.generated) return run_token_choice(c, e);
        kernels::row_maxima(logits(c.reads[0]), part, CpuCall::floats(c.writes[0]));
        if (c.writes.size() > 1) std::copy_n(CpuCall::floats(c.writes[0]), e.rows, CpuCall::floats(c.writes[1]));
        return;
      case CrossEntropy::Part::exponent: {
        float* sums = CpuCall::floats(c.writes[0]);
        return kernels::row_exponents(logits(c.updates[0]), part, CpuCall::floats(c.reads[0]),
                                      CpuCall::integers(c.reads[1]), sums, sums + e.rows);
      }
      case CrossEntropy::Part::loss: {
        const float* sums = CpuCall::floats(c.reads[0]);
        float* losses = CpuCall::floats(c.writes[0]);
        kernels::row_losses(e.rows, sums, sums + e.rows, losses);
        StepLoss& of_step = c.state.losses[c.step_of_plan()];
        for (const PredictedRows& p : predicted_rows(e.rows, e.predictions, e.parts)) {
          for (std::int64_t r = p.first; r < p.first + p.count; ++r)
            of_step.sum += loss_weight(p, e.predictions) * losses[r];
          of_step.tokens += p.depth == 0 ? p.count : 0;
        }
        return;
      }
      case CrossEntropy::Part::gradient:
        return gradient(e, part, logits(c.updates[0]),
                        e.over == Dimension::vocabulary && c.reads.size() > 2 ? CpuCall::floats(c.reads[2]) : nullptr);
      case CrossEntropy::Part::rescale: {
        float* sums = CpuCall::floats(c.updates[0]);
        return kernels::rescale_rows(e.rows, e.columns, part, CpuCall::floats(c.reads[0]),
                                     CpuCall::integers(c.reads[1]), sums, sums + e.rows, CpuCall::floats(c.updates[1]));
      }
      case CrossEntropy::Part::combine: {
        const std::int64_t n = e.rows * e.columns;
        const Values product = c.read(c.reads[0], n), labels = c.read(c.reads[1], n), y = c.write(c.writes[0], n);
        return kernels::combine_gradient(product.data(), labels.data(), CpuCall::floats(c.reads[2]),
                                         CpuCall::floats(c.reads[3]), c.loss_factor(),
                                         matrix(y.data(), e.rows, e.columns));
      }
    }
  }

  void operator()(const Distillation& d) const { run_distillation(c, d); }
  void operator()(const FeatureLoss& f) const { run_feature_loss(c, f); }
  void operator()(const Preference& p) const { run_preference(c, p); }
  void operator()(const Load& l) const { copy_text(c, l, CpuCall::integers(c.writes[0])); }
  void operator()(const Cast& w) const { c.state.generated ? run_pass_cast(c, w) : run_cast(c, w); }
  // A quantisation of a generation fills the cache.
  void operator()(const Quantize& w) const { c.state.generated ? run_store_keys(c) : run_quantize(c, w); }
  void operator()(const Dequantize& w) const { run_dequantize(c, w); }
  void operator()(const FakeQuantize& w) const { run_fake_quantize(c, w); }
  void operator()(const Accumulate& w) const { run_accumulate(c, w); }
  void operator()(const Fill& f) const {
    const Argument& to = c.writes.empty() ? c.gradients[0] : c.writes[0];
    std::fill_n(to.data, f.bytes, std::byte{});
  }
  void operator()(const Multiply& w) const { run_multiply(c, w); }
  void operator()(const SoftCap&) const { no_kernel(); }
  void operator()(const Clamp&) const { no_kernel(); }
  void operator()(const PlaceCopy& w) const {
    for (const PlacedRun& run : runs_of(c, w)) move_on_host(run);
  }
  void operator()(const Wait&) const {}
  void operator()(const Exchange&) const {}  // does nothing: the issuing thread swaps the two buffers itself
  void operator()(const SquaredNorm& w) const { run_squared_norm(c, w); }
  void operator()(const Update& w) const { run_update(c, w); }
  void operator()(const Orthogonalize& w) const { run_orthogonalize(c, w); }
  void operator()(const MoveDirections& w) const { run_move_directions(c, w); }
  void operator()(const Collective&) const { no_kernel(); }
  void operator()(const Transfer&) const { no_kernel(); }
};

}  // namespace

void launch_on_cpu(RunState& state, const Launch& launch) {
  for (const auto& zeroed : launch.zeroed) std::fill(zeroed.begin(), zeroed.end(), std::byte{});
  const CpuCall call(state, launch);
  std::visit(CpuKernels{call}, call.op.work);
}

}  // namespace orrery
