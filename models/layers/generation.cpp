#include "models/layers/generation.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/layers/expert_sizes.h"
#include "models/layers/feed_forward.h"
#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"

namespace orrery {

// Returns the number of pairs of the `query` new tokens with the keys that each attends to: the cached keys, its own
// and those of the new tokens before it; with a sliding window, those within the window.
static double pairs_with_cache(std::int64_t cached, std::int64_t query, std::int64_t window) {
  const std::int64_t growing = window == 0 ? query : std::clamp<std::int64_t>(window - cached, 0, query);
  const auto rows = static_cast<double>(growing);
  return rows * (static_cast<double>(cached) + (rows + 1) / 2) + static_cast<double>((query - growing) * window);
}

// Returns whether CUDA cores compute the attention of each query head for itself.
static bool on_cuda_cores(const Software& software, const FlashAttention& work) {
  constexpr std::int64_t kColumns = 128;
  const std::int64_t group = work.heads / std::max<std::int64_t>(1, work.kv_heads),
                     kernels = software.kernels.grouped_attention;
  return kernels > 0 && group > 1 && (group != kernels || work.head_dim != kColumns);
}

FlashAttention with_cache(const Spec& spec, FlashAttention work) {
  const Generation& g = *spec.generation;
  work.cached = g.cached;
  work.cached_row = g.cached == 0 ? 0 : 2 * work.kv_heads * kv_vector_bytes(g, work.head_dim);
  work.on_cuda_cores = g.cached > 0 && work.query == 1 && !spec.model.mla && on_cuda_cores(spec.software, work);
  work.key = g.cached + work.query;
  if (spec.model.indexer) work.chosen = std::min(spec.model.indexer->top_k, work.key);
  if (g.cached > 0) work.pairs = pairs_with_cache(g.cached, work.query, work.chosen > 0 ? work.chosen : work.window);
  if (const auto& mla = spec.model.mla; mla && (g.cached > 0 || work.chosen > 0)) {
    work.kv_heads = 1;
    work.head_dim = mla->kv_lora_rank + mla->qk_rope_head_dim;
    work.value_dim = mla->kv_lora_rank;
    if (g.cached > 0)
      work.cached_row = kv_vector_bytes(g, mla->kv_lora_rank) + kv_vector_bytes(g, mla->qk_rope_head_dim);
  }
  return work;
}

void store_keys(LayerTape& layer, const HeadSlots& heads) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const std::int64_t columns = m.mla ? m.mla->kv_lora_rank + m.mla->qk_rope_head_dim : 2 * layer.kv_heads * m.head_dim;
  const std::vector<Id> reads = m.mla ? std::vector{heads.qkv, heads.compressed} : heads.slots();
  const Generation& g = *c.spec.generation;
  const BlockBuilder::Uses uses = {.reads = reads, .elsewhere = {{Scope::state, Access::read_write, kKeysValues, -1}}};
  if (!has_kv_scales(g)) {
    layer.tape.emit("keys and values to the cache", Cast{c.rows * columns, c.width, kv_vector_bytes(g, 1)}, uses);
    return;
  }
  const NarrowFormat format =
      g.kv_precision == Precision::nvfp4
          ? NarrowFormat{NarrowKind::nvfp4, kNvfp4Block}
          : NarrowFormat{g.kv_precision == Precision::int8 ? NarrowKind::int8 : NarrowKind::int4,
                         m.mla ? columns / 2 : m.head_dim};
  layer.tape.emit("keys and values to the cache",
                  Quantize{.format = format, .elements = c.rows * columns, .wide = c.width}, uses);
}

void read_cache(LayerTape& layer, BlockBuilder::Uses& attention) {
  attention.elsewhere.push_back({Scope::state, Access::read, kKeysValues, -1});
  if (layer.model.mla) attention.weights.push_back(layer.tape.parameter_named("attention.key_value_up.weight"));
}

bool serves_experts(const Spec& spec) {
  return spec.generation && spec.strategy.expert * spec.strategy.expert_tensor == spec.strategy.tensor;
}

namespace {

// The buffers of the router's results on one rank: the weight of each choice (token, expert); the chosen expert and the
// choice's row among those of the rank's own experts, or -1; and the number of rows of each own expert.
struct Choices {
  Id weights, routing, counts;
};

// Returns the products of the experts on this rank: the number of experts that get any tokens, and the number of rows.
// With few tokens some experts get none, and their weights are not read.
GroupedGemm own_rows(const BlockContext& c, const Moe& moe) {
  const auto rows = static_cast<double>(c.rows), local = static_cast<double>(moe.experts / c.spec.strategy.expert);
  const double chosen = static_cast<double>(moe.top_k) / static_cast<double>(moe.experts);
  const auto own = std::max<std::int64_t>(1, std::llround(rows * chosen * local));
  return {.groups = local_experts_met(moe, std::llround(local), rows),
          .rows = own,
          .result_bytes = c.width,
          .even = true,
          .uneven = prefers_some(moe),
          .passed = std::max<std::int64_t>(0, c.rows * moe.top_k - own)};
}

// Adds a buffer for the rows of the experts of this rank. It has room for every choice of every token, because only the
// device knows how many rows there are (vLLM fused_moe.py: intermediate_cache13, M * top_k rows).
Id expert_rows(LayerTape& layer, const std::string& name, std::int64_t columns) {
  return activation(layer, name, layer.context.rows * layer.model.moe->top_k, columns);
}

Id expert_product(LayerTape& layer, const std::string& name, Id x, const Choices& choices, GroupedGemm work, Cut cut) {
  const QuantisedProducts narrow(layer, QuantisedLayers::experts);
  const std::int64_t local = layer.model.moe->experts / layer.context.spec.strategy.expert;
  const auto weight = layer.tape.parameter("moe." + name + ".weight", local * work.out, work.in, cut, false, 0, local);
  const Id y = expert_rows(layer, name + " output", work.out);
  const CastSlots given = to_fp8(layer, name + " input", x, work.rows * work.in, true);
  layer.tape.emit(name, work, {.reads = {given.rows, choices.counts}, .writes = {y}, .weights = {weight}});
  return y;
}

Id expert_activation(LayerTape& layer, Id x, const Activation& work) {
  const Id y = expert_rows(layer, "experts activation output", work.columns);
  BlockBuilder::Uses uses = {.reads = {x}, .writes = {y}};
  if (work.gated && !work.fused) uses.writes.push_back(expert_rows(layer, "silu output", work.columns));
  layer.tape.emit("experts activation", work, uses);
  return y;
}

Choices choose_experts(LayerTape& layer, Id logits) {
  const BlockContext& c = layer.context;
  const Moe& moe = *layer.model.moe;
  const std::int64_t all = c.rows * moe.top_k;
  std::vector<std::int32_t> bias;
  if (moe.correction_bias) bias = {layer.tape.parameter("moe.router.correction_bias", moe.experts, 1, Cut::none)};
  const Choices choices = {layer.tape.slot("choice weights", all * 4), layer.tape.slot("routing", all * 8),
                           layer.tape.slot("token counts", moe.experts / c.spec.strategy.expert * 4)};
  layer.tape.emit("gate",
                  Gate{.rows = c.rows,
                       .experts = moe.experts,
                       .top_k = moe.top_k,
                       .expert_groups = moe.expert_groups,
                       .top_groups = moe.top_groups,
                       .sigmoid = moe.sigmoid_scores,
                       .corrected = moe.correction_bias},
                  {.reads = {logits}, .writes = {choices.weights, choices.routing, choices.counts}, .weights = bias});
  return choices;
}

// Records the shared experts, which every token passes through, and their gate if the model has one.
Id served_shared(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Id y = feed_forward(layer, "shared experts", "moe.shared", x, m.moe->shared_feed_forward / c.tensor, false);
  if (!m.moe->shared_gate) return y;
  const Id gate = replicated(layer, "shared gate", x, m.hidden, 1, {.name = "moe.shared_gate", .wide = true});
  const Id gated = activation(layer, "gated shared experts", c.rows, m.hidden);
  // The kernel that multiplies by the gate is that of the sum with the routed experts' result.
  layer.tape.emit("shared gate product", SigmoidGate{c.rows, m.hidden},
                  {.reads = {y, gate}, .writes = {gated}, .within = true});
  return gated;
}

}  // namespace

Id served_experts(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Moe& moe = *m.moe;
  const Id logits = replicated(layer, "router", x, m.hidden, moe.experts,
                               {.name = "moe.router", .bias = moe.router_bias, .wide = true, .fp32 = moe.router_fp32});
  const Choices choices = choose_experts(layer, logits);
  GroupedGemm work = own_rows(c, moe);
  const std::int64_t width = moe.feed_forward / c.spec.strategy.expert_tensor;
  const Id rows = expert_rows(layer, "rows of own experts", m.hidden);
  layer.tape.emit("permute", Permute{c.rows, moe.top_k, m.hidden, work.rows, true, true},
                  {.reads = {x, choices.routing}, .writes = {rows}});
  work.in = m.hidden;
  work.out = width * (m.gated ? 2 : 1);
  const Id up = expert_product(layer, "experts.up", rows, choices, work, m.gated ? Cut::halves : Cut::rows);
  const Id active = expert_activation(layer, up,
                                      {.rows = work.rows,
                                       .columns = width,
                                       .gated = m.gated,
                                       .fused = c.spec.software.kernels.fused_activation,
                                       .limit = m.activation_clamp});
  work.in = width;
  work.out = m.hidden;
  const Id down = expert_product(layer, "experts.down", active, choices, work, Cut::columns);
  Id out = activation(layer, "experts output", c.rows, m.hidden);
  layer.tape.emit("unpermute", Permute{c.rows, moe.top_k, m.hidden, work.rows, false, true},
                  {.reads = {down, choices.weights, choices.routing}, .writes = {out}});
  if (moe.shared_feed_forward > 0) out = sum(layer, "experts sum", out, served_shared(layer, x), c.rows);
  return reduce_from_tensor(layer, "experts", out, c.rows, m.hidden);
}

Block next_token_block(const BlockContext& context, std::vector<Op>& ops) {
  BlockContext c = context;
  c.rows = c.local_rows = context.spec.generation->checks() ? context.rows : c.batch;
  LayerTape b(c, "output", BlockRole::output);
  b.tape.input(context.local_rows * c.hidden * c.width);
  const Id last = activation(b, "last hidden states", c.rows, c.hidden);
  b.tape.emit("last tokens", Cast{c.rows * c.hidden, c.width, c.width}, {.reads = {kInput}, .writes = {last}});
  const std::string weight = c.spec.model.tied_embeddings ? "embedding.word" : "output";
  const std::int64_t columns = c.padded_vocab / c.tensor;
  const Id logits = column_parallel(b, "logits", last, c.hidden, columns, {weight});
  soft_cap(b, "logit cap", logits, c.rows * columns, c.spec.model.logit_softcap, c.spec.software.kernels.compile);
  const Id best = b.tape.slot("best logits and their tokens", c.rows * 8);
  b.tape.emit("token choice", CrossEntropy{.rows = c.rows, .columns = columns, .part = CrossEntropy::Part::maximum},
              {.reads = {logits}, .writes = {best}});
  // A logit and its token are one number of 8 bytes, so that the largest one tells the token.
  if (c.tensor > 1) tensor_all_reduce(b, "token choice reduce", best, c.rows * 8, 8, true);
  b.tape.emit("chosen tokens", Cast{c.rows, 8, 8}, {.reads = {best}, .within = true});
  return b.tape.finish(ops);
}

}  // namespace orrery
