// The attention part of LayerBuilder: heads are cut over the tensor group, key/value heads replicated when there are
// fewer of them than ranks.
#include <algorithm>

#include "models/layer_builder.h"

namespace orrery {

LayerBuilder::Id LayerBuilder::attention(Id x, bool windowed, bool reduce) {
  const std::int64_t d = m_.head_dim;
  const std::int64_t width = (heads_ + 2 * kv_heads_) * d;
  const Id qkv = column_parallel("qkv", x, m_.hidden, width, "attention.qkv.weight", m_.bias || m_.qkv_bias,
                                 c_.kv_copies > 1 ? 2 * kv_heads_ * d : 0);
  const Id rotated = rotate(head_norms(qkv));
  const bool again = recompute.attention && !recompute.layer;
  if (again) tape.begin_region(true);
  const bool flash = c_.spec.strategy.attention == Attention::flash;
  const Id attended = flash ? flash_attention(rotated, windowed) : unfused_attention(rotated);
  if (again) {
    tape.end_region();
    tape.keep(attended);
  }
  return row_parallel("attention output", attended, heads_ * d, m_.hidden, "attention.output.weight", reduce);
}

LayerBuilder::Id LayerBuilder::head_norms(Id qkv) {
  if (!m_.qk_norm) return qkv;
  const std::int64_t rows = c_.rows * (heads_ + kv_heads_);
  const bool layernorm = m_.norm == Norm::layernorm;
  std::vector<std::int32_t> weights;
  for (const std::string name : {"attention.query norm", "attention.key norm"}) {
    weights.push_back(tape.parameter(name + ".weight", m_.head_dim, 1, true, c_.tensor > 1));
    if (layernorm) weights.push_back(tape.parameter(name + ".bias", m_.head_dim, 1, true, c_.tensor > 1));
  }
  const Normalize work = {rows, m_.head_dim, layernorm, c_.spec.software.fused_norm, Direction::forward};
  const Id y = activation("normed qkv", c_.rows, (heads_ + 2 * kv_heads_) * m_.head_dim);
  const Id statistics = tape.slot("statistics", rows * (layernorm ? 8 : 4));
  tape.emit("head norms", work, {.reads = {qkv}, .writes = {y, statistics}, .weights = weights});
  tape.on_backward([=, this] {
    Normalize back = work;
    back.direction = Direction::backward;
    const Id dx = activation("head norms gradient", c_.rows, (heads_ + 2 * kv_heads_) * m_.head_dim);
    tape.emit("head norms gradient", back,
              {.reads = {qkv, statistics, tape.gradient(y)},
               .writes = {dx},
               .weights = weights,
               .weight_gradients = weights});
    tape.contribute(qkv, dx);
  });
  return y;
}

// In place on queries and keys, forward and back: a rotation is undone by the opposite one.
LayerBuilder::Id LayerBuilder::rotate(Id qkv) {
  if (m_.positions != Positions::rope) return qkv;
  const Rotary work = {c_.rows, (heads_ + kv_heads_) * m_.head_dim, c_.spec.software.fused_rotary, Direction::forward};
  tape.emit("rotary", work, {.updates = {qkv}});
  tape.on_backward([=, this] {
    Rotary back = work;
    back.direction = Direction::backward;
    tape.emit("rotary gradient", back, {.updates = {tape.gradient(qkv)}});
  });
  return qkv;
}

LayerBuilder::Id LayerBuilder::flash_attention(Id qkv, bool windowed) {
  const FlashAttention work = {c_.batch,          heads_,      kv_heads_,   c_.sequence,
                               c_.spec.sequence,  m_.head_dim, m_.head_dim, windowed ? m_.sliding_window->window : 0,
                               Direction::forward};
  const Id y = activation("attention values", c_.rows, heads_ * m_.head_dim);
  const Id statistics = tape.slot("statistics", c_.rows * heads_ * 4);  // log-sum-exp of every row, fp32
  tape.emit("attention", work, {.reads = {qkv}, .writes = {y, statistics}});
  tape.on_backward([=, this] {
    FlashAttention back = work;
    back.direction = Direction::backward;
    const Id dx = activation("attention gradient", c_.rows, (heads_ + 2 * kv_heads_) * m_.head_dim);
    tape.emit("attention gradient", back, {.reads = {qkv, y, statistics, tape.gradient(y)}, .writes = {dx}});
    tape.contribute(qkv, dx);
  });
  return y;
}

// Scores and probabilities (batch, heads, query, key) are written out. With dropout the probabilities, the mask and the
// dropped probabilities are kept: 5 a s^2 b bytes (Korthikanti et al. 2022).
LayerBuilder::Id LayerBuilder::unfused_attention(Id qkv) {
  const std::int64_t q = c_.sequence, k = c_.spec.sequence, d = m_.head_dim, batch = c_.batch * heads_;
  const std::int64_t elements = batch * q * k;
  const bool drops = m_.dropout > 0;
  const Id scores = tape.slot("scores", elements * c_.width);
  const Id probabilities = tape.slot("probabilities", elements * c_.width);
  const Id mask = drops ? tape.slot("attention dropout mask", elements) : probabilities;
  const Id dropped = drops ? tape.slot("dropped probabilities", elements * c_.width) : probabilities;
  const Id y = activation("attention values", c_.rows, heads_ * d);
  const Softmax softmax = {batch * q, k, false, c_.spec.software.fused_softmax, Direction::forward};
  const Residual drop = {batch * q, k, false, false, true, true, Direction::forward};
  const auto bmm = [&](std::int64_t m, std::int64_t n, std::int64_t inner, Gemm::Role role) {
    return Gemm{.m = m, .n = n, .k = inner, .batch = batch, .role = role, .result_bytes = c_.width};
  };
  const Gemm to_scores = bmm(q, k, d, Gemm::Role::scores), to_values = bmm(q, d, k, Gemm::Role::values);
  tape.emit("scores", to_scores, {.reads = {qkv}, .writes = {scores}});
  tape.emit("softmax", softmax, {.reads = {scores}, .writes = {probabilities}});
  if (drops) tape.emit("attention dropout", drop, {.reads = {probabilities}, .writes = {dropped, mask}});
  tape.emit("values", to_values, {.reads = {dropped, qkv}, .writes = {y}});
  tape.on_backward([=, this] {
    const Id dy = tape.gradient(y);
    const Id dqkv = activation("qkv gradient", c_.rows, (heads_ + 2 * kv_heads_) * d);
    const Id dp = tape.slot("probabilities gradient", elements * c_.width);
    const Gemm of_values = {
        .m = k, .n = d, .k = q, .batch = batch, .role = Gemm::Role::values, .result_bytes = c_.width};
    tape.emit("values gradient", of_values, {.reads = {dropped, dy}, .writes = {dqkv}});
    tape.emit("probabilities gradient", to_scores, {.reads = {dy, qkv}, .writes = {dp}});
    if (drops) {
      Residual back = drop;
      back.direction = Direction::backward;
      tape.emit("attention dropout gradient", back, {.reads = {mask}, .updates = {dp}});
    }
    Softmax back = softmax;
    back.direction = Direction::backward;
    tape.emit("softmax gradient", back, {.reads = {probabilities}, .updates = {dp}});
    tape.emit("query gradient", to_values, {.reads = {dp, qkv}, .updates = {dqkv}});
    tape.emit("key gradient", of_values, {.reads = {dp, qkv}, .updates = {dqkv}});
    tape.contribute(qkv, dqkv);
  });
  return y;
}

}  // namespace orrery
