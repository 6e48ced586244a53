#include <cassert>

#include <fmt/format.h>

#include "exec/cuda/call.h"
#include "exec/host/place_copies.h"
#include "kernels/cuda/activation.h"
#include "kernels/cuda/cross_entropy.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/embedding.h"
#include "kernels/cuda/norm.h"
#include "kernels/cuda/residual.h"
#include "kernels/cuda/rotary.h"
#include "kernels/cuda/softmax.h"
#include "models/base/error.h"
#include "models/layers/blocks.h"

namespace orrery::cuda {
namespace {

struct CudaKernels {
  const CudaCall& c;

  // Throws an Error that names an op without a GPU kernel. It is a safeguard: check_executable() already refuses specs
  // whose plans need such a kernel, and transfers between ranks are run by the transport.
  [[noreturn]] void no_kernel() const { throw Error(fmt::format("{}: GPU ranks have no kernel for it", c.op.name), 1); }

  void operator()(const Gemm& g) const { run_product(c, g); }
  void operator()(const FlashAttention& a) const { run_attention(c, a); }
  void operator()(const MoveHeads& m) const { run_move_heads(c, m); }

  void operator()(const Softmax& s) const {
    const gpu::Matrix in = c.matrix(c.reads[0], s.rows, s.columns);
    if (s.direction == Direction::forward)
      return gpu::masked_softmax(in, c.sequence(), {.window = s.window}, c.matrix(c.writes[0], s.rows, s.columns),
                                 c.stream);
    gpu::softmax_gradient(in, c.matrix(c.updates[0], s.rows, s.columns), c.stream);
  }

  void operator()(const Normalize& n) const {
    // Two sets of weights mean two norms in one op (query-key norm): one of the query heads, one of the key heads.
    if (c.weights.size() > (n.layernorm ? 2 : 1)) return head_norms(n);
    const auto rows = [&](const Argument& a) { return gpu::one_head(c.matrix(a, n.rows, n.columns)); };
    float* statistics = CudaCall::floats(n.direction == Direction::forward ? c.writes[1] : c.reads[1]);
    const gpu::NormStatistics saved = {statistics, statistics + n.rows};
    if (n.direction == Direction::forward) return norm(n, rows(c.reads[0]), 0, rows(c.writes[0]), saved);
    norm_gradient(n, rows(c.reads[0]), saved, rows(c.reads[2]), 0, rows(c.writes[0]));
  }

  // kind: index of the norm's weight among the op's weights (with head norms, i.e. QK norm, 0 for queries, 1 for keys).
  void norm(const Normalize& n, gpu::ConstHeads x, std::size_t kind, gpu::Heads y, gpu::NormStatistics saved) const {
    const gpu::Array w = CudaCall::weight(c.weights[kind]);
    if (n.layernorm)
      gpu::layer_norm(x, w, CudaCall::weight(c.weights[kind + 1]), kNormEpsilon, y, saved, c.stream);
    else
      gpu::rms_norm(x, w, kNormEpsilon, y, saved, c.stream);
  }

  void norm_gradient(const Normalize& n, gpu::ConstHeads x, gpu::NormStatistics saved, gpu::ConstHeads dy,
                     std::size_t kind, gpu::Heads dx) const {
    const gpu::Array w = CudaCall::weight(c.weights[kind]), dw = CudaCall::weight(c.gradients[kind]);
    const gpu::Workspace workspace = c.workspace(gpu::norm_gradient_workspace(x.batch * x.rows * x.heads, x.head_dim));
    if (n.layernorm)
      gpu::layer_norm_gradient(x, saved, dy, w, dx, dw, CudaCall::weight(c.gradients[kind + 1]), workspace, c.stream);
    else
      gpu::rms_norm_gradient(x, saved, dy, w, dx, dw, workspace, c.stream);
  }

  // Normalizes every head of the queries, then of the keys, with separate weights for the two; statistics are by head.
  void head_norms(const Normalize& n) const {
    const std::int64_t tokens = c.batch() * c.sequence(), heads = n.rows / tokens;
    const std::int64_t queries = c.rank.spec.model.heads / c.head_parts();
    const bool forward = n.direction == Direction::forward;
    const std::size_t per_kind = n.layernorm ? 2 : 1;
    float* statistics = CudaCall::floats(forward ? c.writes[1] : c.reads[1]);
    for (const bool keys : {false, true}) {
      const std::int64_t first = keys ? queries : 0, count = keys ? heads - queries : queries;
      const auto view = [&](const Argument& a) {
        return heads_of(c.matrix(a, tokens, c.columns(a, tokens)), 1, first, count, n.columns);
      };
      const gpu::NormStatistics saved = {statistics + first * tokens, statistics + n.rows + first * tokens};
      const std::size_t kind = keys ? per_kind : 0;
      if (forward)
        norm(n, view(c.reads[0]), kind, view(c.writes[0]), saved);
      else
        norm_gradient(n, view(c.reads[0]), saved, view(c.reads[2]), kind, view(c.updates[0]));
    }
  }

  void operator()(const Rotary& r) const {
    const gpu::Matrix all = c.matrix(c.updates[0], r.rows, c.columns(c.updates[0], r.rows));
    const gpu::Matrix x = columns_of(all, 0, r.columns);
    const bool back = r.direction == Direction::backward;
    if (c.rank.parts.size() == 1)
      return gpu::rotate(c.gpu_state.rotary(), {c.sequence(), c.rank.parts[0].first}, back, x, c.stream);
    c.for_samples(r.rows, [&](std::int64_t row, std::int64_t count, std::int64_t, std::int64_t position) {
      gpu::rotate(c.gpu_state.rotary(), {count, position}, back, rows_of(x, row, count), c.stream);
    });
  }

  void operator()(const Activation& a) const {
    const auto wide = [&](const Argument& x) { return c.matrix(x, a.rows, a.columns * (a.gated ? 2 : 1)); };
    const auto narrow = [&](const Argument& x) { return c.matrix(x, a.rows, a.columns); };
    const gpu::Matrix x = wide(c.reads[0]);
    const auto limit = static_cast<float>(a.limit);
    if (a.direction == Direction::forward) {
      const gpu::Matrix y = narrow(c.writes[0]);
      return a.gated ? gpu::swiglu(x, y, limit, c.stream) : gpu::gelu(x, {}, y, c.stream);
    }
    const gpu::Matrix dy = narrow(c.reads[1]), dx = wide(c.writes[0]);
    a.gated ? gpu::swiglu_gradient(x, dy, dx, limit, c.stream) : gpu::gelu_gradient(x, {}, dy, dx, c.stream);
  }

  void operator()(const Residual& r) const {
    const auto rows = [&](const Argument& a) { return c.matrix(a, r.rows, r.columns); };
    if (r.direction == Direction::backward) return dropout_backward(r);
    gpu::ConstMatrix base;
    if (r.residual) base = rows(c.reads[0]);
    const gpu::Matrix x = rows(c.reads[r.residual ? 1 : 0]), y = rows(c.writes[0]);
    assert(c.weights.size() <= 2);
    gpu::Biases biases;
    if (!c.weights.empty()) biases.first = CudaCall::weight(c.weights[0]);
    if (c.weights.size() > 1) biases.second = CudaCall::weight(c.weights[1]);
    if (!r.dropout) return gpu::residual(base, x, biases, 0, nullptr, y, c.stream);
    auto* mask = reinterpret_cast<std::uint8_t*>(c.writes[1].data);
    for (const MaskPart& m : mask_parts(c, r)) {
      const auto part = [&](auto matrix) { return matrix.data == nullptr ? matrix : rows_of(matrix, m.row, m.count); };
      gpu::residual_drawing(part(base), part(gpu::ConstMatrix(x)), biases, m.dropout, mask + m.row * r.columns, part(y),
                            c.stream);
    }
  }

  void dropout_backward(const Residual& r) const {
    const auto rows = [&](const Argument& a) { return c.matrix(a, r.rows, r.columns); };
    const bool in_place = !c.updates.empty();
    const Argument& mask = c.reads[in_place ? 0 : 1];
    gpu::dropout_gradient(rows(in_place ? c.updates[0] : c.reads[0]), r.dropout ? c.rank.spec.model.dropout : 0,
                          reinterpret_cast<const std::uint8_t*>(mask.data), rows(in_place ? c.updates[0] : c.writes[0]),
                          c.stream);
  }

  void operator()(const Add& a) const {
    gpu::add(a.elements, c.activation(c.reads[0]), c.activation(c.reads[1]), c.activation(c.writes[0]), c.stream);
  }

  void operator()(const BiasGradient& b) const {
    gpu::bias_gradient(c.matrix(c.reads[0], b.rows, b.columns), CudaCall::weight(c.gradients[0]),
                       c.workspace(gpu::bias_gradient_workspace(b.rows, b.columns)), c.stream);
  }

  void operator()(const Embedding& e) const {
    if (e.positions) return positions(e);
    const std::int64_t first = first_token(c, e.over, e.vocab);
    if (e.direction == Direction::forward)
      return gpu::embed(CudaCall::integers(c.reads[0]), first, CudaCall::weight(c.weights[0], e.vocab, e.columns),
                        c.matrix(c.writes[0], e.rows, e.columns), c.stream);
    gpu::embed_gradient(CudaCall::integers(c.reads[1]), first, c.matrix(c.reads[0], e.rows, e.columns),
                        gpu::matrix(c.table_gradient(), e.vocab, e.columns),
                        c.workspace(gpu::embed_gradient_workspace(e.rows, e.vocab)), c.stream);
  }

  void positions(const Embedding& e) const {
    const bool forward = e.direction == Direction::forward;
    const gpu::Matrix in = c.matrix(c.reads[0], e.rows, e.columns);
    const gpu::Matrix table =
        gpu::matrix(forward ? CudaCall::weight(c.weights[0]) : c.table_gradient(), e.vocab, e.columns);
    c.for_samples(e.rows, [&](std::int64_t row, std::int64_t count, std::int64_t, std::int64_t position) {
      const gpu::Matrix rows = rows_of(in, row, count);
      if (forward)
        gpu::add_positions(rows, table, {count, position},
                           rows_of(c.matrix(c.writes[0], e.rows, e.columns), row, count), c.stream);
      else
        gpu::positions_gradient(rows, {count, position}, table, c.stream);
    });
  }

  void operator()(const CrossEntropy& e) const {
    const kernels::VocabularyPart part = {first_token(c, e.over, e.columns), c.rank.spec.model.vocab};
    const auto logits = [&](const Argument& a) {
      return gpu::matrix(gpu::Array{a.data, gpu::Type::fp32}, e.rows, e.columns);
    };
    switch (e.part) {
      case CrossEntropy::Part::maximum:
        gpu::row_maxima(logits(c.reads[0]), part, CudaCall::floats(c.writes[0]), c.stream);
        if (c.writes.size() > 1)
          ORRERY_CHECK_CUDA(cudaMemcpyAsync(c.writes[1].data, c.writes[0].data,
                                            static_cast<std::size_t>(e.rows) * sizeof(float), cudaMemcpyDeviceToDevice,
                                            c.stream));
        return;
      case CrossEntropy::Part::exponent: {
        float* sums = CudaCall::floats(c.writes[0]);
        return gpu::row_exponents(logits(c.updates[0]), part, CudaCall::floats(c.reads[0]),
                                  CudaCall::integers(c.reads[1]), sums, sums + e.rows, c.stream);
      }
      case CrossEntropy::Part::loss: {
        const float* sums = CudaCall::floats(c.reads[0]);
        float* losses = CudaCall::floats(c.writes[0]);
        gpu::row_losses(e.rows, sums, sums + e.rows, losses, c.stream);
        gpu::add_sum(e.rows, losses, c.gpu_state.loss(), c.stream);
        c.state.losses[0].tokens += e.rows;
        return;
      }
      case CrossEntropy::Part::gradient:
        return gpu::cross_entropy_gradient(
            logits(c.updates[0]), part, CudaCall::floats(c.reads[1]), CudaCall::integers(c.reads[0]), token_factor(c),
            e.over == Dimension::vocabulary && c.reads.size() > 2 ? CudaCall::floats(c.reads[2]) : nullptr, c.stream);
      case CrossEntropy::Part::rescale: {
        float* sums = CudaCall::floats(c.updates[0]);
        return gpu::rescale_rows(e.rows, e.columns, part, CudaCall::floats(c.reads[0]), CudaCall::integers(c.reads[1]),
                                 sums, sums + e.rows, CudaCall::floats(c.updates[1]), c.stream);
      }
      case CrossEntropy::Part::combine:
        return gpu::combine_gradient(c.matrix(c.reads[0], e.rows, e.columns), c.matrix(c.reads[1], e.rows, e.columns),
                                     CudaCall::floats(c.reads[2]), CudaCall::floats(c.reads[3]), token_factor(c),
                                     c.matrix(c.writes[0], e.rows, e.columns), c.stream);
    }
  }

  void operator()(const Load& l) const {
    std::int64_t* text = c.gpu_state.text(c.task);
    copy_text(c, l, text);
    const auto bytes = static_cast<std::size_t>(l.rows) * sizeof(std::int64_t);
    ORRERY_CHECK_CUDA(cudaMemcpyAsync(c.writes[0].data, text, bytes, cudaMemcpyHostToDevice, c.stream));
  }

  void operator()(const Cast& w) const { run_cast(c, w); }
  void operator()(const Accumulate& w) const { run_accumulate(c, w); }
  void operator()(const Fill& f) const {
    const Argument& to = c.writes.empty() ? c.gradients[0] : c.writes[0];
    ORRERY_CHECK_CUDA(cudaMemsetAsync(to.data, 0, static_cast<std::size_t>(f.bytes), c.stream));
  }
  void operator()(const Multiply& w) const { run_multiply(c, w); }
  void operator()(const SoftCap&) const { no_kernel(); }
  void operator()(const Clamp&) const { no_kernel(); }
  void operator()(const Distillation&) const { no_kernel(); }
  void operator()(const FeatureLoss&) const { no_kernel(); }
  void operator()(const Preference&) const { no_kernel(); }
  void operator()(const LatentHeads&) const { no_kernel(); }
  void operator()(const Split&) const { no_kernel(); }
  void operator()(const Gate&) const { no_kernel(); }
  void operator()(const Permute&) const { no_kernel(); }
  void operator()(const SigmoidGate&) const { no_kernel(); }
  void operator()(const Convolution&) const { no_kernel(); }
  void operator()(const Scan&) const { no_kernel(); }
  void operator()(const GatedNorm&) const { no_kernel(); }
  void operator()(const Quantize&) const { no_kernel(); }
  void operator()(const Dequantize&) const { no_kernel(); }
  void operator()(const FakeQuantize&) const { no_kernel(); }
  void operator()(const IndexScores&) const { no_kernel(); }
  void operator()(const Pool&) const { no_kernel(); }
  void operator()(const MixStreams&) const { no_kernel(); }
  void operator()(const SortChunks&) const { no_kernel(); }
  void operator()(const GroupedGemm&) const { no_kernel(); }
  void operator()(const GroupedBias&) const { no_kernel(); }
  void operator()(const CountTokens&) const { no_kernel(); }
  void operator()(const PlaceCopy& w) const {
    for (const PlacedRun& run : runs_of(c, w))
      ORRERY_CHECK_CUDA(cudaMemcpyAsync(run.to.data + run.to_first, run.from.data + run.from_first,
                                        static_cast<std::size_t>(run.bytes), cudaMemcpyDefault, c.stream));
  }
  void operator()(const Wait&) const {}
  void operator()(const Exchange&) const { no_kernel(); }
  void operator()(const SquaredNorm& w) const { run_squared_norm(c, w); }
  void operator()(const Orthogonalize&) const { no_kernel(); }
  void operator()(const MoveDirections&) const { no_kernel(); }
  void operator()(const Update& w) const { run_update(c, w); }
  void operator()(const Collective&) const { no_kernel(); }
  void operator()(const Transfer&) const { no_kernel(); }
};

}  // namespace

void launch_on_cuda(CudaState& state, const Launch& launch, cudaStream_t stream) {
  const CudaCall call(state, launch, stream);
  std::visit(CudaKernels{call}, call.op.work);
}

}  // namespace orrery::cuda
