// The attention part of LayerBuilder: heads are cut over the tensor group, key/value heads replicated when there are
// fewer of them than ranks.
#include <algorithm>

#include "models/layers/layer_builder.h"

namespace orrery {

// Makes queries, keys and values by one projection.
LayerBuilder::Heads LayerBuilder::packed_heads(Id x) {
  const std::int64_t d = m_.head_dim;
  const std::int64_t width = (heads_ + 2 * kv_heads_) * d;
  const Id projected =
      column_parallel("qkv", x, m_.hidden, width,
                      {"attention.qkv", Cut::heads, m_.bias || m_.qkv_bias, c_.kv_copies > 1 ? 2 * kv_heads_ * d : 0});
  const Heads heads = head_norms(in_attention_layout(projected, width));
  rotate(heads.queries_keys);
  return heads;
}

LayerBuilder::Id LayerBuilder::attention(Id x, bool windowed, bool reduce) {
  const Heads heads = m_.mla ? latent_heads(x) : packed_heads(x);
  const bool again = recompute.attention && !recompute.layer;
  if (again) tape.begin_region(true);
  const bool flash = c_.spec.strategy.attention == Attention::flash, cut = c_.spec.strategy.context > 1;
  const Id attended = cut     ? context_attention(heads, windowed)
                      : flash ? flash_attention(heads, whole_part(), windowed)
                              : unfused_attention(heads, whole_part(), windowed);
  if (again) {
    tape.end_region();
    tape.keep(attended);
  }
  return row_parallel("attention output", attended, heads_ * value_dim(), m_.hidden, "attention.output.weight", reduce,
                      packs_attention());
}

// Stacks that split or permute the packed projection copy it, and copy its gradient back. Where there are several
// copies, attention reads keys and values from the last one, and queries from the first, where they stand beside keys
// and values.
LayerBuilder::Id LayerBuilder::in_attention_layout(Id qkv, std::int64_t width) {
  const Cast copy = {c_.rows * width, c_.width, c_.width};
  const std::int64_t copies = c_.spec.software.attention_copies;
  std::vector<Id> beside;
  for (std::int64_t i = 0; i < copies; ++i) {
    const Id from = qkv;
    qkv = activation("qkv in attention layout", c_.rows, width);
    BlockBuilder::Uses uses = {.reads = {from}, .writes = {qkv}};
    if (i == 0 && copies > 1) {
      beside = {activation("keys and values beside queries", c_.rows, width - heads_ * m_.head_dim)};
      uses.writes.push_back(beside[0]);
    }
    tape.emit("qkv layout", copy, uses);
    const std::vector<Id> until = i == copies - 1 ? beside : std::vector<Id>{};
    tape.on_backward([=, this] {
      const Id dx = activation("qkv layout gradient", c_.rows, width);
      tape.emit("qkv layout gradient", copy, {.reads = {tape.gradient(qkv)}, .writes = {dx}, .holds = until});
      tape.contribute(from, dx);
    });
  }
  return qkv;
}

// Norms of queries and keys by heads. Values need no norm: they stay where the projection left them.
LayerBuilder::Heads LayerBuilder::head_norms(Id qkv) {
  if (!m_.qk_norm) return {qkv, qkv};
  const std::int64_t rows = c_.rows * (heads_ + kv_heads_);
  const bool layernorm = m_.norm == Norm::layernorm;
  std::vector<std::int32_t> weights;
  for (const std::string name : {"attention.query norm", "attention.key norm"}) {
    weights.push_back(tape.parameter(name + ".weight", m_.head_dim, 1, Cut::none, c_.tensor > 1));
    if (layernorm) weights.push_back(tape.parameter(name + ".bias", m_.head_dim, 1, Cut::none, c_.tensor > 1));
  }
  const Normalize work = {rows, m_.head_dim, layernorm, c_.spec.software.fused_norm, Direction::forward};
  const Id y = activation("normed queries and keys", c_.rows, (heads_ + kv_heads_) * m_.head_dim);
  const Id statistics = tape.slot("statistics", rows * (layernorm ? 8 : 4));
  tape.emit("head norms", work, {.reads = {qkv}, .writes = {y, statistics}, .weights = weights});
  tape.on_backward([=, this] {
    Normalize back = work;
    back.direction = Direction::backward;
    tape.emit("head norms gradient", back,
              {.reads = {qkv, statistics, tape.gradient(y)},
               .updates = {tape.gradient(qkv)},
               .weights = weights,
               .weight_gradients = weights});
  });
  return {y, qkv};
}

// Rotates queries and keys in place, forward and backward: a rotation is undone by the opposite one.
void LayerBuilder::rotate(Id queries_keys) {
  if (m_.positions != Positions::rope) return;
  const Rotary work = {c_.rows, (heads_ + kv_heads_) * m_.head_dim, m_.head_dim, c_.spec.software.fused_rotary,
                       Direction::forward};
  tape.emit("rotary", work, {.updates = {queries_keys}});
  tape.on_backward([=, this] {
    Rotary back = work;
    back.direction = Direction::backward;
    tape.emit("rotary gradient", back, {.updates = {tape.gradient(queries_keys)}});
  });
}

// Slots where attention's backward leaves its gradients. With head norms the gradient of the projection first holds
// only that of the values, and the norms' backward adds queries and keys.
LayerBuilder::Heads LayerBuilder::head_gradients(const Heads& heads, const AttentionPart& part) {
  const std::int64_t rows = c_.batch * part.query;
  if (m_.mla) {
    const Id dq = activation("queries gradient", rows, part.heads * m_.head_dim);
    const Id dkv = activation("keys and values gradient", rows, part.heads * (m_.head_dim + value_dim()));
    tape.contribute(heads.queries_keys, dq);
    tape.contribute(heads.qkv, dkv);
    return {dq, dkv};
  }
  const Id dqkv = activation("qkv gradient", rows, (part.heads + 2 * part.kv_heads) * m_.head_dim);
  tape.contribute(heads.qkv, dqkv);
  if (heads.queries_keys == heads.qkv) return {dqkv, dqkv};
  const Id dqk = activation("queries and keys gradient", rows, (part.heads + part.kv_heads) * m_.head_dim);
  tape.contribute(heads.queries_keys, dqk);
  return {dqk, dqkv};
}

FlashAttention LayerBuilder::flash_work(const AttentionPart& part, bool windowed) const {
  FlashAttention work{c_.batch,           part.heads,          part.kv_heads, part.query,
                      part.query,         m_.head_dim,         value_dim(),   windowed ? m_.sliding_window->window : 0,
                      Direction::forward, m_.attention_softcap};
  work.drops = m_.dropout > 0;
  return work;
}

LayerBuilder::Id LayerBuilder::flash_attention(const Heads& heads, const AttentionPart& part, bool windowed) {
  FlashAttention work = flash_work(part, windowed);
  // Without it, keys are those of the whole sequence, row after row
  work.keys_apart = m_.mla && c_.spec.strategy.context > 1;
  const std::int64_t rows = c_.batch * part.query;
  const Id y = activation("attention values", rows, part.heads * value_dim());
  const Id statistics = tape.slot("statistics", rows * part.heads * 4);  // the log-sum-exp of every row, fp32
  tape.emit("attention", work, {.reads = heads.slots(), .writes = {y, statistics}});
  const Id values = packs_attention() ? kept_in_12_bits(y, rows * part.heads * value_dim()) : y;
  tape.on_backward([=, this] {
    FlashAttention back = work;
    back.direction = Direction::backward;
    const Heads d = head_gradients(heads, part);
    BlockBuilder::Uses uses = {.reads = heads.slots(), .writes = d.slots()};
    uses.reads.insert(uses.reads.end(), {values, statistics, tape.gradient(values)});
    tape.emit("attention gradient", back, uses);
  });
  return values;
}

bool LayerBuilder::packs_attention() const {
  const Strategy& s = c_.spec.strategy;
  return eight_bit_ && c_.spec.software.packs_attention_output && s.attention == Attention::flash && s.context == 1 &&
         !recompute.attention && !recompute.layer;
}

// DeepSeek-V3 (arXiv 2412.19437, section 3.3.3): the gradient of attention needs more than 8 bits of attention's
// output, so the output is kept in 12 (E5M6), for the product behind it too. It is widened where it is read, and in
// backward once more. Casting two values turns four bytes into three.
LayerBuilder::Id LayerBuilder::kept_in_12_bits(Id values, std::int64_t elements) {
  const Id packed = tape.slot("attention values in 12 bits", ceil_div(elements * 3, 2));
  const std::int64_t pairs = ceil_div(elements, 2);
  tape.emit("attention values to 12 bits", Cast{pairs, 4, 3}, {.reads = {values}, .writes = {packed}});
  const Id again = tape.slot("attention values", elements * c_.width);
  tape.begin_region(true);
  tape.emit("attention values from 12 bits", Cast{pairs, 3, 4}, {.reads = {packed}, .writes = {again}});
  tape.end_region();
  return again;
}

// The buffers and ops of unfused attention, which its backward needs again. Scores and probabilities (batch, heads,
// query, key) are written out. With dropout the probabilities, the mask and the dropped probabilities are kept: 5 a s^2
// b bytes (Korthikanti et al. 2022).
struct LayerBuilder::Unfused {
  Heads heads;
  AttentionPart part;
  std::int64_t q = 0, k = 0, d = 0, batch = 0;  // batch: samples * heads
  Bytes width = 2;
  std::int64_t query_heads = 0, kv_heads = 0;
  Id scores{}, probabilities{}, mask{}, dropped{}, y{};  // mask and dropped: the same as probabilities without dropout
  Softmax softmax;
  Residual drop;
  SoftCap cap;
  bool drops = false, caps = false;

  Bytes bytes() const { return batch * q * k * width; }
  Gemm product(std::int64_t m, std::int64_t n, std::int64_t inner, Gemm::Role role) const {
    return {.m = m,
            .n = n,
            .k = inner,
            .batch = batch,
            .role = role,
            .result_bytes = width,
            .heads = query_heads,
            .kv_heads = kv_heads};
  }
};

LayerBuilder::Unfused LayerBuilder::unfused_parts(const Heads& heads, const AttentionPart& part, bool windowed) {
  Unfused u{
      .heads = heads, .part = part, .q = part.query, .k = part.query, .d = m_.head_dim, .batch = c_.batch * part.heads};
  u.width = c_.width;
  u.query_heads = part.heads;
  u.kv_heads = part.kv_heads;
  u.drops = m_.dropout > 0;
  u.caps = m_.attention_softcap > 0;
  u.scores = tape.slot("scores", u.bytes());
  u.probabilities = tape.slot("probabilities", u.bytes());
  u.mask = u.drops ? tape.slot("attention dropout mask", u.bytes() / u.width) : u.probabilities;
  u.dropped = u.drops ? tape.slot("dropped probabilities", u.bytes()) : u.probabilities;
  u.y = activation("attention values", c_.batch * part.query, part.heads * u.d);
  const std::int64_t window = windowed ? m_.sliding_window->window : 0;
  u.softmax = {u.batch * u.q, u.k, false, c_.spec.software.fused_softmax, Direction::forward, window};
  u.drop = {u.batch * u.q, u.k, false, false, true, true, Direction::forward, c_.inner};
  u.cap = {u.batch * u.q * u.k, m_.attention_softcap, c_.spec.software.compile, Direction::forward};
  return u;
}

LayerBuilder::Id LayerBuilder::unfused_attention(const Heads& heads, const AttentionPart& part, bool windowed) {
  const Unfused u = unfused_parts(heads, part, windowed);
  tape.emit("scores", u.product(u.q, u.k, u.d, Gemm::Role::scores),
            {.reads = {heads.queries_keys}, .writes = {u.scores}});
  if (u.caps) tape.emit("score cap", u.cap, {.updates = {u.scores}});
  tape.emit("softmax", u.softmax, {.reads = {u.scores}, .writes = {u.probabilities}});
  if (u.drops) tape.emit("attention dropout", u.drop, {.reads = {u.probabilities}, .writes = {u.dropped, u.mask}});
  tape.emit("values", u.product(u.q, u.d, u.k, Gemm::Role::values), {.reads = {u.dropped, heads.qkv}, .writes = {u.y}});
  tape.on_backward([=, this] { unfused_backward(u); });
  return u.y;
}

void LayerBuilder::unfused_backward(const Unfused& u) {
  const auto backward = [](auto work) {
    work.direction = Direction::backward;
    return work;
  };
  const Id dy = tape.gradient(u.y);
  const Heads of = head_gradients(u.heads, u.part);
  const Id dp = tape.slot("probabilities gradient", u.bytes());
  tape.emit("values gradient", u.product(u.k, u.d, u.q, Gemm::Role::value_gradient),
            {.reads = {u.dropped, dy}, .writes = {of.qkv}});
  tape.emit("probabilities gradient", u.product(u.q, u.k, u.d, Gemm::Role::probability_gradient),
            {.reads = {dy, u.heads.qkv}, .writes = {dp}});
  if (u.drops) tape.emit("attention dropout gradient", backward(u.drop), {.reads = {u.mask}, .updates = {dp}});
  tape.emit("softmax gradient", backward(u.softmax), {.reads = {u.probabilities}, .updates = {dp}});
  if (u.caps) tape.emit("score cap gradient", backward(u.cap), {.reads = {u.scores}, .updates = {dp}});
  BlockBuilder::Uses query = {.reads = {dp, u.heads.queries_keys}};
  (of.queries_keys == of.qkv ? query.updates : query.writes) = {of.queries_keys};
  tape.emit("query gradient", u.product(u.q, u.d, u.k, Gemm::Role::query_gradient), query);
  tape.emit("key gradient", u.product(u.k, u.d, u.q, Gemm::Role::key_gradient),
            {.reads = {dp, u.heads.queries_keys}, .updates = {of.queries_keys}});
}

}  // namespace orrery
