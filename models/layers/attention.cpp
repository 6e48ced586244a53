// This file records the ops of attention. Heads are sharded over the tensor group; if there are fewer key/value heads
// than tensor ranks, several ranks hold the same key/value head.
#include "models/layers/attention.h"

#include <algorithm>

#include "models/layers/context_attention.h"
#include "models/layers/gated_attention.h"
#include "models/layers/generation.h"
#include "models/layers/latent_attention.h"
#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"
#include "models/layers/norms.h"
#include "models/layers/sparse_attention.h"
#include "models/spec/documents.h"

namespace orrery {
namespace {

// The buffers and sizes that forward and backward of unfused attention use. Scores and probabilities, of shape (batch,
// heads, query, key), are written to memory. With dropout the probabilities, the dropout mask and the probabilities
// after dropout are kept until backward: 5 a s^2 b bytes (a heads, s tokens, b samples; Korthikanti et al. 2022).
struct Unfused {
  HeadSlots heads;
  AttentionPart part;
  // q, k: numbers of queries and of keys; d: elements of a head; batch: number of samples * query heads on this rank
  std::int64_t q = 0, k = 0, d = 0, batch = 0;
  Bytes width = 2;
  std::int64_t query_heads = 0, kv_heads = 0;
  // ids of buffers; without dropout, those of `mask` and `dropped` are that of `probabilities`
  Id scores{}, probabilities{}, mask{}, dropped{}, y{};
  Softmax softmax;
  Residual drop;
  SoftCap cap;
  std::vector<std::int32_t> sinks;
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

}  // namespace

// Records copies of the packed QKV projection, and in backward of its gradient, for frameworks that split or permute
// the projection before attention. If a framework copies the projection several times in succession
// (kernels.attention_copies), attention reads keys and values from the last copy and queries from the first, whose
// memory also holds a second set of keys and values; that memory stays allocated until backward.
static Id in_attention_layout(LayerTape& layer, Id qkv, std::int64_t width) {
  const BlockContext& c = layer.context;
  const Cast copy = {c.rows * width, c.width, c.width};
  const std::int64_t copies = c.spec.software.kernels.attention_copies;
  std::vector<Id> beside;
  for (std::int64_t i = 0; i < copies; ++i) {
    const Id from = qkv;
    qkv = activation(layer, "qkv in attention layout", c.rows, width);
    BlockBuilder::Uses uses = {.reads = {from}, .writes = {qkv}};
    if (i == 0 && copies > 1) {
      beside = {
          activation(layer, "keys and values beside queries", c.rows, width - layer.heads * layer.model.head_dim)};
      uses.writes.push_back(beside[0]);
    }
    layer.tape.emit("qkv layout", copy, uses);
    const std::vector<Id> until = i == copies - 1 ? beside : std::vector<Id>{};
    layer.tape.on_backward([=, &layer, &c] {
      const Id dx = activation(layer, "qkv layout gradient", c.rows, width);
      layer.tape.emit("qkv layout gradient", copy,
                      {.reads = {layer.tape.gradient(qkv)}, .writes = {dx}, .holds = until});
      layer.tape.contribute(from, dx);
    });
  }
  return qkv;
}

// Records one norm over all query heads of a token together, and one over all key heads. If heads are sharded over
// several ranks, the ranks first all-reduce the sums of squares. Every rank holds the complete weights of both norms.
static HeadSlots norms_of_all_heads(LayerTape& layer, Id qkv) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const bool layernorm = m.norm == Norm::layernorm, cut = c.tensor > 1;
  std::vector<std::int32_t> weights = norm_weights(layer, "attention.query norm", m.heads * m.head_dim, cut);
  const std::vector<std::int32_t> keys = norm_weights(layer, "attention.key norm", m.kv_heads * m.head_dim, cut);
  weights.insert(weights.end(), keys.begin(), keys.end());
  const std::int64_t columns = (layer.heads + layer.kv_heads) * m.head_dim;
  const Bytes moments = 2 * c.rows * (layernorm ? 8 : 4);
  const auto work = [=, &c](Direction direction, Normalize::Part part) {
    return Normalize{c.rows, columns, layernorm, c.spec.software.kernels.fused_norm, direction, part, c.tensor};
  };
  const auto sum = [=, &layer](const std::string& name, Id sums) {
    layer.tape.emit(name + " sums reduce", Collective{.group = Dimension::tensor, .bytes = moments, .width = 4},
                    {.updates = {sums}}, LaneKind::tensor);
  };
  const Id y = activation(layer, "normed queries and keys", c.rows, columns);
  const Id statistics = layer.tape.slot("statistics", moments);
  if (cut) {
    layer.tape.emit("head norms sums", work(Direction::forward, Normalize::Part::sums),
                    {.reads = {qkv}, .writes = {statistics}});
    sum("head norms", statistics);
    layer.tape.emit("head norms", work(Direction::forward, Normalize::Part::finish),
                    {.reads = {qkv}, .writes = {y}, .updates = {statistics}, .weights = weights});
  } else {
    layer.tape.emit("head norms", work(Direction::forward, Normalize::Part::whole),
                    {.reads = {qkv}, .writes = {y, statistics}, .weights = weights});
  }
  layer.tape.on_backward([=, &layer] {
    std::vector<Id> reads = {qkv, statistics, layer.tape.gradient(y)};
    if (cut) {
      const Id sums = layer.tape.slot("gradient sums", moments);
      layer.tape.emit("head norms gradient sums", work(Direction::backward, Normalize::Part::sums),
                      {.reads = reads, .writes = {sums}, .weights = weights});
      sum("head norms gradient", sums);
      reads.push_back(sums);
    }
    layer.tape.emit(
        "head norms gradient", work(Direction::backward, cut ? Normalize::Part::finish : Normalize::Part::whole),
        {.reads = reads, .updates = {layer.tape.gradient(qkv)}, .weights = weights, .weight_gradients = weights});
  });
  return {y, qkv};
}

// Adds the weights of the learned attention sinks of this rank's heads (each is one more term of the softmax's
// denominator); returns an empty list for models without sinks.
static std::vector<std::int32_t> sinks_of(LayerTape& layer) {
  if (!layer.model.attention_sinks) return {};
  return {layer.tape.parameter("attention.sinks", layer.heads, 1, Cut::rows)};
}

// Records norms of queries and keys, each head by itself. Values have no norm: attention reads them from the
// projection.
static HeadSlots head_norms(LayerTape& layer, Id qkv) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  if (m.qk_norm_all) return norms_of_all_heads(layer, qkv);
  if (!m.qk_norm) return {qkv, qkv};
  const std::int64_t rows = c.rows * (layer.heads + layer.kv_heads);
  const bool layernorm = m.norm == Norm::layernorm;
  std::vector<std::int32_t> weights = norm_weights(layer, "attention.query norm", m.head_dim, c.tensor > 1);
  const std::vector<std::int32_t> of_keys = norm_weights(layer, "attention.key norm", m.head_dim, c.tensor > 1);
  weights.insert(weights.end(), of_keys.begin(), of_keys.end());
  const Normalize work = {rows, m.head_dim, layernorm, c.spec.software.kernels.fused_norm, Direction::forward};
  const Id y = activation(layer, "normed queries and keys", c.rows, (layer.heads + layer.kv_heads) * m.head_dim);
  const Id statistics = layer.tape.slot("statistics", rows * (layernorm ? 8 : 4));
  layer.tape.emit("head norms", work, {.reads = {qkv}, .writes = {y, statistics}, .weights = weights});
  layer.tape.on_backward([=, &layer] {
    Normalize back = work;
    back.direction = Direction::backward;
    layer.tape.emit("head norms gradient", back,
                    {.reads = {qkv, statistics, layer.tape.gradient(y)},
                     .updates = {layer.tape.gradient(qkv)},
                     .weights = weights,
                     .weight_gradients = weights});
  });
  return {y, qkv};
}

// Records the rotation of queries and keys by their positions (RoPE), in place; backward rotates their gradients by the
// opposite angle, also in place.
static void rotate(LayerTape& layer, Id queries_keys) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  if (m.positions != Positions::rope) return;
  const Rotary work = {c.rows, (layer.heads + layer.kv_heads) * m.head_dim, m.head_dim,
                       c.spec.software.kernels.fused_rotary, Direction::forward};
  const auto& generation = c.spec.generation;
  const bool within = generation && generation->answers() && c.spec.software.kernels.attention_rotates;
  layer.tape.emit("rotary", work, {.updates = {queries_keys}, .within = within});
  layer.tape.on_backward([=, &layer] {
    Rotary back = work;
    back.direction = Direction::backward;
    layer.tape.emit("rotary gradient", back, {.updates = {layer.tape.gradient(queries_keys)}});
  });
}

// The buffers with the results of the QKV projection: queries, keys and values, and the gate of attention's output if
// the model has one.
struct ProjectedHeads {
  HeadSlots heads{};
  Id gate{};
};

static ProjectedHeads projected_heads(LayerTape& layer, Id x) {
  const Model& m = layer.model;
  const std::int64_t d = m.head_dim, gate = m.attention_gate ? layer.heads * d : 0;
  const std::int64_t width = (layer.heads + 2 * layer.kv_heads) * d;
  const bool separate = layer.context.spec.software.kernels.separate_projections;
  const Id projected =
      column_parallel(layer, "qkv", x, m.hidden, gate + width,
                      {.name = "attention.qkv",
                       .cut = Cut::heads,
                       .bias = has_qkv_bias(m),
                       .kv_rows = layer.context.kv_copies > 1 ? 2 * layer.kv_heads * d : 0,
                       .apart = separate ? std::vector{gate + layer.heads * d, layer.kv_heads * d, layer.kv_heads * d}
                                         : std::vector<std::int64_t>{}});
  const GatedProjection parts = gate > 0 ? split_gate(layer, projected, gate, width) : GatedProjection{{}, projected};
  const HeadSlots heads = head_norms(layer, in_attention_layout(layer, parts.qkv, width));
  rotate(layer, heads.queries_keys);
  return {heads, parts.gate};
}

static bool packs_attention(LayerTape& layer) {
  const BlockContext& c = layer.context;
  const Strategy& s = c.spec.strategy;
  return layer.eight_bit && c.spec.software.kernels.packs_attention_output && s.attention == Attention::flash &&
         s.context == 1 && !layer.recompute.attention && !layer.recompute.layer;
}

// Records the QKV projection and attention, and returns the buffer of the heads' outputs, of shape (rows, heads *
// value_dim).
static Id attended_values(LayerTape& layer, Id x, bool windowed) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  if (m.indexer) return c.spec.generation ? served_sparse_attention(layer, x) : sparse_latent_attention(layer, x);
  const ProjectedHeads parts = m.mla ? ProjectedHeads{.heads = latent_heads(layer, x)} : projected_heads(layer, x);
  const HeadSlots& heads = parts.heads;
  const bool again = layer.recompute.attention && !layer.recompute.layer;
  if (again) layer.tape.begin_region(true);
  const bool flash = c.spec.strategy.attention == Attention::flash, cut = c.spec.strategy.context > 1;
  const Id attended = cut     ? context_attention(layer, heads, windowed)
                      : flash ? flash_attention(layer, heads, whole_part(layer), windowed)
                              : unfused_attention(layer, heads, whole_part(layer), windowed);
  if (again) {
    layer.tape.end_region();
    layer.tape.keep(attended);
  }
  if (c.spec.generation) store_keys(layer, heads);
  return m.attention_gate ? gated_values(layer, attended, parts.gate) : attended;
}

Id attention(LayerTape& layer, Id x, bool windowed, bool reduce) {
  const Model& m = layer.model;
  const Id values = attended_values(layer, x, windowed);
  return row_parallel(layer, "attention output", values, layer.heads * value_dim(layer), m.hidden,
                      "attention.output.weight", reduce, packs_attention(layer));
}

HeadSlots head_gradients(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part) {
  const Model& m = layer.model;
  const std::int64_t rows = layer.context.batch * part.query;
  if (m.mla) {
    const Id dq = activation(layer, "queries gradient", rows, part.heads * m.head_dim);
    const Id dkv = activation(layer, "keys and values gradient", rows, part.heads * (m.head_dim + value_dim(layer)));
    layer.tape.contribute(heads.queries_keys, dq);
    layer.tape.contribute(heads.qkv, dkv);
    return {dq, dkv};
  }
  const Id dqkv = activation(layer, "qkv gradient", rows, (part.heads + 2 * part.kv_heads) * m.head_dim);
  layer.tape.contribute(heads.qkv, dqkv);
  if (heads.queries_keys == heads.qkv) return {dqkv, dqkv};
  const Id dqk = activation(layer, "queries and keys gradient", rows, (part.heads + part.kv_heads) * m.head_dim);
  layer.tape.contribute(heads.queries_keys, dqk);
  return {dqk, dqkv};
}

FlashAttention flash_work(LayerTape& layer, const AttentionPart& part, bool windowed) {
  const Model& m = layer.model;
  FlashAttention work{
      layer.context.batch, part.heads,         part.kv_heads,    part.query,
      part.query,          m.head_dim,         value_dim(layer), windowed ? m.sliding_window->window : 0,
      Direction::forward,  m.attention_softcap};
  work.drops = m.dropout > 0;
  const EightBitAttention when = layer.context.spec.software.kernels.eight_bit_attention;
  work.eight_bit = layer.eight_bit &&
                   (when == EightBitAttention::always ||
                    (when == EightBitAttention::nvfp4 && layer.context.spec.strategy.precision == Precision::nvfp4));
  if (layer.context.spec.generation) return with_cache(layer.context.spec, work);
  if (m.bidirectional)
    work.pairs = static_cast<double>(part.query * (work.window > 0 ? std::min(work.window, part.query) : part.query));
  if (layer.context.spec.documents) work.pairs = document_pairs(layer.context.spec, work.window, true).busiest;
  return work;
}

// Keeps attention's output in 12 bits (E5M6) for backward and for the product after it (DeepSeek-V3, arXiv 2412.19437,
// section 3.3.3), since attention's backward needs more than 8 bits of its output. The output is cast back to 16 bits
// for the product, and once more in backward. One element of the Cast op is a pair of values: four bytes become three.
static Id kept_in_12_bits(LayerTape& layer, Id values, std::int64_t elements) {
  const Id packed = layer.tape.slot("attention values in 12 bits", ceil_div(elements * 3, 2));
  const std::int64_t pairs = ceil_div(elements, 2);
  layer.tape.emit("attention values to 12 bits", Cast{pairs, 4, 3}, {.reads = {values}, .writes = {packed}});
  const Id again = layer.tape.slot("attention values", elements * layer.context.width);
  layer.tape.begin_region(true);
  layer.tape.emit("attention values from 12 bits", Cast{pairs, 3, 4}, {.reads = {packed}, .writes = {again}});
  layer.tape.end_region();
  return again;
}

// Records the cast of attention's operands to 8 bits, along rows and along columns, as its products in backward need
// both (Transformer Engine, combine_and_quantize in attention/dot_product_attention/utils.py). Returns the buffer of
// the cast, which is held while attention runs.
static std::vector<Id> attention_cast(LayerTape& layer, const FlashAttention& work, const std::string& name,
                                      const std::vector<Id>& operands, std::int64_t elements) {
  if (!work.eight_bit) return {};
  const Id cast = layer.tape.slot(name + " in 8 bits", 2 * elements, Category::buffers);
  layer.tape.emit(name + " to 8 bits", Cast{elements, layer.context.width, 1, true},
                  {.reads = operands, .writes = {cast}});
  return {cast};
}

Id flash_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed) {
  const BlockContext& c = layer.context;
  FlashAttention work = flash_work(layer, part, windowed);
  // Keys have a buffer of their own only in latent attention under context parallelism.
  work.keys_apart = layer.model.mla && c.spec.strategy.context > 1;
  const std::int64_t rows = c.batch * part.query;
  const Id y = activation(layer, "attention values", rows, part.heads * value_dim(layer));
  // `statistics` holds the log-sum-exp of every row of attention scores, in fp32, which backward needs.
  const Id statistics = layer.tape.slot("statistics", rows * part.heads * 4);
  const std::vector<std::int32_t> sinks = sinks_of(layer);
  const std::int64_t operands = rows * (part.heads * work.head_dim + part.kv_heads * (work.head_dim + work.value_dim));
  const std::vector<Id> cast = attention_cast(layer, work, "attention operands", heads.slots(), operands);
  BlockBuilder::Uses forward = {.reads = heads.slots(), .writes = {y, statistics}, .weights = sinks, .holds = cast};
  if (work.cached > 0) read_cache(layer, forward);
  layer.tape.emit("attention", work, forward);
  const Id values = packs_attention(layer) ? kept_in_12_bits(layer, y, rows * part.heads * value_dim(layer)) : y;
  layer.tape.on_backward([=, &layer] {
    FlashAttention back = work;
    back.direction = Direction::backward;
    const HeadSlots d = head_gradients(layer, heads, part);
    BlockBuilder::Uses uses = {
        .reads = heads.slots(), .writes = d.slots(), .weights = sinks, .weight_gradients = sinks};
    const Id dy = layer.tape.gradient(values);
    uses.reads.insert(uses.reads.end(), {values, statistics, dy});
    uses.holds = attention_cast(layer, work, "attention output gradient", {dy}, rows * part.heads * work.value_dim);
    layer.tape.emit("attention gradient", back, uses);
  });
  return values;
}

static Unfused unfused_parts(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  Unfused u{
      .heads = heads, .part = part, .q = part.query, .k = part.query, .d = m.head_dim, .batch = c.batch * part.heads};
  u.width = c.width;
  u.query_heads = part.heads;
  u.kv_heads = part.kv_heads;
  u.drops = m.dropout > 0;
  u.caps = m.attention_softcap > 0;
  u.sinks = sinks_of(layer);
  u.scores = layer.tape.slot("scores", u.bytes());
  u.probabilities = layer.tape.slot("probabilities", u.bytes());
  u.mask = u.drops ? layer.tape.slot("attention dropout mask", u.bytes() / u.width) : u.probabilities;
  u.dropped = u.drops ? layer.tape.slot("dropped probabilities", u.bytes()) : u.probabilities;
  u.y = activation(layer, "attention values", c.batch * part.query, part.heads * u.d);
  const std::int64_t window = windowed ? m.sliding_window->window : 0;
  u.softmax = {u.batch * u.q, u.k, false, c.spec.software.kernels.fused_softmax, Direction::forward, window};
  u.drop = {u.batch * u.q, u.k, false, false, true, true, Direction::forward, c.intermediate_side};
  u.cap = {u.batch * u.q * u.k, m.attention_softcap, c.spec.software.kernels.compile, Direction::forward};
  return u;
}

static void unfused_backward(LayerTape& layer, const Unfused& u) {
  const auto backward = [](auto work) {
    work.direction = Direction::backward;
    return work;
  };
  const Id dy = layer.tape.gradient(u.y);
  const HeadSlots of = head_gradients(layer, u.heads, u.part);
  const Id dp = layer.tape.slot("probabilities gradient", u.bytes());
  layer.tape.emit("values gradient", u.product(u.k, u.d, u.q, Gemm::Role::value_gradient),
                  {.reads = {u.dropped, dy}, .writes = {of.qkv}});
  layer.tape.emit("probabilities gradient", u.product(u.q, u.k, u.d, Gemm::Role::probability_gradient),
                  {.reads = {dy, u.heads.qkv}, .writes = {dp}});
  if (u.drops) layer.tape.emit("attention dropout gradient", backward(u.drop), {.reads = {u.mask}, .updates = {dp}});
  layer.tape.emit("softmax gradient", backward(u.softmax),
                  {.reads = {u.probabilities}, .updates = {dp}, .weight_gradients = u.sinks});
  if (u.caps) layer.tape.emit("score cap gradient", backward(u.cap), {.reads = {u.scores}, .updates = {dp}});
  BlockBuilder::Uses query = {.reads = {dp, u.heads.queries_keys}};
  (of.queries_keys == of.qkv ? query.updates : query.writes) = {of.queries_keys};
  layer.tape.emit("query gradient", u.product(u.q, u.d, u.k, Gemm::Role::query_gradient), query);
  layer.tape.emit("key gradient", u.product(u.k, u.d, u.q, Gemm::Role::key_gradient),
                  {.reads = {dp, u.heads.queries_keys}, .updates = {of.queries_keys}});
}

Id unfused_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed) {
  const Unfused u = unfused_parts(layer, heads, part, windowed);
  layer.tape.emit("scores", u.product(u.q, u.k, u.d, Gemm::Role::scores),
                  {.reads = {heads.queries_keys}, .writes = {u.scores}});
  if (u.caps) layer.tape.emit("score cap", u.cap, {.updates = {u.scores}});
  layer.tape.emit("softmax", u.softmax, {.reads = {u.scores}, .writes = {u.probabilities}, .weights = u.sinks});
  if (u.drops)
    layer.tape.emit("attention dropout", u.drop, {.reads = {u.probabilities}, .writes = {u.dropped, u.mask}});
  layer.tape.emit("values", u.product(u.q, u.d, u.k, Gemm::Role::values),
                  {.reads = {u.dropped, heads.qkv}, .writes = {u.y}});
  layer.tape.on_backward([=, &layer] { unfused_backward(layer, u); });
  return u.y;
}

}  // namespace orrery
