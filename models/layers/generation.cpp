#include "models/layers/generation.h"

#include <algorithm>
#include <cmath>

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"

namespace orrery {

FlashAttention with_cache(const Spec& spec, FlashAttention work) {
  const Generation& g = *spec.generation;
  work.cached = g.cached;
  work.cached_row = g.cached == 0 ? 0 : 2 * work.kv_heads * work.head_dim * kv_width(g);
  work.key = g.cached + work.query;
  const auto query = static_cast<double>(work.query), cached = static_cast<double>(g.cached);
  // A query attends to the cached keys, its own key and those of the new tokens before it; with a sliding window, to
  // those within the window only.
  double keys = cached + (query + 1) / 2;
  if (work.window > 0) keys = std::min(keys, static_cast<double>(work.window));
  if (g.cached > 0) work.pairs = query * keys;
  if (const auto& mla = spec.model.mla; mla && g.cached > 0) {
    work.kv_heads = 1;
    work.head_dim = mla->kv_lora_rank + mla->qk_rope_head_dim;
    work.value_dim = mla->kv_lora_rank;
    work.cached_row = work.head_dim * kv_width(g);
  }
  return work;
}

void store_keys(LayerTape& layer, const HeadSlots& heads) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const std::int64_t columns = m.mla ? m.mla->kv_lora_rank + m.mla->qk_rope_head_dim : 2 * layer.kv_heads * m.head_dim;
  layer.tape.emit("keys and values to the cache", Cast{c.rows * columns, c.width, kv_width(*c.spec.generation)},
                  {.reads = heads.slots()});
}

bool serves_experts(const Spec& spec) {
  return spec.generation && spec.strategy.expert * spec.strategy.expert_tensor == spec.strategy.tensor;
}

namespace {

// Returns the products of the experts on this rank: the number of experts that get any tokens, and the number of rows.
// With few tokens some experts get none, and their weights are not read: with uniform choices, a token does not choose
// a given expert with the probability 1 - top_k / experts.
GroupedGemm own_rows(const BlockContext& c, const Moe& moe) {
  const auto rows = static_cast<double>(c.rows), local = static_cast<double>(moe.experts / c.spec.strategy.expert);
  const double chosen = static_cast<double>(moe.top_k) / static_cast<double>(moe.experts);
  const double met = local * (1 - std::pow(1 - chosen, rows));
  return {.groups = std::max<std::int64_t>(1, std::llround(met)),
          .rows = std::max<std::int64_t>(1, std::llround(rows * chosen * local)),
          .result_bytes = c.width,
          .even = true};
}

Id expert_product(LayerTape& layer, const std::string& name, Id x, GroupedGemm work, Cut cut) {
  const std::int64_t local = layer.model.moe->experts / layer.context.spec.strategy.expert;
  const auto weight = layer.tape.parameter("moe." + name + ".weight", local * work.out, work.in, cut, false, 0, local);
  const Id y = activation(layer, name + " output", work.rows, work.out);
  const CastSlots given = to_fp8(layer, name + " input", x, work.rows * work.in, true);
  layer.tape.emit(name, work, {.reads = {given.rows}, .writes = {y}, .weights = {weight}});
  return y;
}

}  // namespace

Id served_experts(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Moe& moe = *m.moe;
  const Id logits = replicated(layer, "router", x, m.hidden, moe.experts,
                               {.name = "moe.router", .bias = moe.router_bias, .wide = true});
  std::vector<std::int32_t> bias;
  if (moe.correction_bias) bias = {layer.tape.parameter("moe.router.correction_bias", moe.experts, 1, Cut::none)};
  const Id choices = layer.tape.slot("choices", c.rows * moe.top_k * 12);
  layer.tape.emit("gate",
                  Gate{.rows = c.rows,
                       .experts = moe.experts,
                       .top_k = moe.top_k,
                       .expert_groups = moe.expert_groups,
                       .top_groups = moe.top_groups,
                       .sigmoid = moe.sigmoid_scores,
                       .corrected = moe.correction_bias},
                  {.reads = {logits}, .writes = {choices}, .weights = bias});
  GroupedGemm work = own_rows(c, moe);
  const std::int64_t width = moe.feed_forward / c.spec.strategy.expert_tensor;
  const Id rows = activation(layer, "rows of own experts", work.rows, m.hidden);
  layer.tape.emit("permute", Permute{c.rows, moe.top_k, m.hidden, work.rows, true, true},
                  {.reads = {x, choices}, .writes = {rows}});
  work.in = m.hidden;
  work.out = width * (m.gated ? 2 : 1);
  const Id up = expert_product(layer, "experts.up", rows, work, m.gated ? Cut::halves : Cut::rows);
  const Id active = activate(layer, "experts activation", {up, {work.rows}, width, false, std::nullopt});
  work.in = width;
  work.out = m.hidden;
  const Id down = expert_product(layer, "experts.down", active, work, Cut::columns);
  Id out = activation(layer, "experts output", c.rows, m.hidden);
  layer.tape.emit("unpermute", Permute{c.rows, moe.top_k, m.hidden, work.rows, false, true},
                  {.reads = {down, choices}, .writes = {out}});
  if (moe.shared_feed_forward > 0) {
    const Id shared = feed_forward(layer, "shared experts", "moe.shared", x, moe.shared_feed_forward / c.tensor, false);
    if (moe.shared_gate) replicated(layer, "shared gate", x, m.hidden, 1, {.name = "moe.shared_gate", .wide = true});
    out = sum(layer, "experts sum", out, shared, c.rows);
  }
  return reduce_from_tensor(layer, "experts", out, c.rows, m.hidden);
}

Block next_token_block(const BlockContext& context, std::vector<Op>& ops) {
  BlockContext c = context;
  c.rows = c.local_rows = c.batch;
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
  if (c.tensor > 1) tensor_all_reduce(b, "token choice reduce", best, c.rows * 8, 4, true);
  return b.tape.finish(ops);
}

}  // namespace orrery
