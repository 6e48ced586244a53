#include "models/layers/generation.h"

#include <algorithm>

#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"

namespace orrery {

FlashAttention with_cache(const Spec& spec, FlashAttention work) {
  const Generation& g = *spec.generation;
  work.cached = g.cached;
  work.cached_row = g.cached == 0 ? 0 : 2 * work.kv_heads * work.head_dim * kv_width(g);
  work.key = g.cached + work.query;
  const auto query = static_cast<double>(work.query), cached = static_cast<double>(g.cached);
  // A query sees the cached keys, its own and those of the new tokens before it, or those within the window.
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
  const std::int64_t columns =
      m.mla ? m.mla->kv_lora_rank + m.mla->qk_rope_head_dim : 2 * layer.kv_heads * m.head_dim;
  layer.tape.emit("keys and values to the cache", Cast{c.rows * columns, c.width, kv_width(*c.spec.generation)},
                  {.reads = heads.slots()});
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
