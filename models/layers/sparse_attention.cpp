#include "models/layers/sparse_attention.h"

#include <algorithm>

#include "models/layers/generation.h"
#include "models/layers/latent_attention.h"
#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"
#include "models/layers/norms.h"

namespace orrery {
static Id normed_index_keys(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const std::int64_t columns = layer.model.indexer->head_dim;
  const std::vector<std::int32_t> weights = {
      layer.tape.parameter("indexer.key norm.weight", columns, 1, Cut::none, c.sequence_parallel),
      layer.tape.parameter("indexer.key norm.bias", columns, 1, Cut::none, c.sequence_parallel)};
  const Normalize work = {c.local_rows, columns, true, c.spec.software.kernels.fused_norm, Direction::forward};
  const Id y = activation(layer, "index keys normed", c.local_rows, columns);
  const Id statistics = layer.tape.slot("statistics", c.local_rows * 8);
  layer.tape.emit("index key norm", work, {.reads = {x}, .writes = {y, statistics}, .weights = weights});
  layer.tape.on_backward([=, &layer, &c] {
    Normalize back = work;
    back.direction = Direction::backward;
    const Id dx = activation(layer, "index keys gradient", c.local_rows, columns);
    layer.tape.emit("index key norm gradient", back,
                    {.reads = {x, statistics, layer.tape.gradient(y)},
                     .writes = {dx},
                     .weights = {weights.front()},
                     .weight_gradients = weights});
    layer.tape.contribute(x, dx);
  });
  return y;
}

// Records the ops that compute the queries, keys and weights of the index, a small attention that chooses the tokens to
// attend to. The index is trained separately (arXiv 2512.02556, section 2.1.1): its loss sends no gradient to the
// layer's input and queries.
static Index index_of(LayerTape& layer, Id x, Id compressed_queries) {
  const Model& m = layer.model;
  const Indexer& i = *m.indexer;
  const auto linear = [&](const std::string& name, Id from, std::int64_t in, std::int64_t out, const char* weight) {
    return replicated(layer, name, from, in, out, {.name = weight, .wide = true, .input_gradient = false});
  };
  const Id queries =
      linear("index queries", compressed_queries, m.mla->q_lora_rank, i.heads * i.head_dim, "indexer.query");
  const Id keys = normed_index_keys(layer, linear("index keys", x, m.hidden, i.head_dim, "indexer.key"));
  const Id weights = linear("index weights", x, m.hidden, i.heads, "indexer.weights");
  return {gather_rows(layer, "index queries", queries, i.heads * i.head_dim),
          gather_rows(layer, "index keys", keys, i.head_dim), gather_rows(layer, "index weights", weights, i.heads),
          layer.context.sequence};
}

Id chosen_tokens(LayerTape& layer, const Index& index, Id target) {
  const BlockContext& c = layer.context;
  const Indexer& i = *layer.model.indexer;
  const std::int64_t keys = index.keys_of_sample;
  const IndexScores work = {c.batch, i.heads, c.sequence, keys, i.head_dim, std::min(i.top_k, keys)};
  const Bytes bytes = c.rows * work.top_k * 4;
  const Id chosen = layer.tape.slot("chosen tokens", bytes);
  layer.tape.emit("index scores", work, {.reads = {index.queries, index.keys, index.weights}, .writes = {chosen}});
  layer.tape.on_backward([=, &layer, &c] {
    IndexScores back = work;
    back.direction = Direction::backward;
    if (c.tensor > 1) tensor_all_reduce(layer, "index target reduce", target, bytes, 4);
    const Index d = {activation(layer, "index queries gradient", c.rows, i.heads * i.head_dim),
                     activation(layer, "index keys gradient", c.batch * keys, i.head_dim),
                     activation(layer, "index weights gradient", c.rows, i.heads), keys};
    layer.tape.emit("index scores gradient", back,
                    {.reads = {index.queries, index.keys, index.weights, chosen, target},
                     .writes = {d.queries, d.keys, d.weights}});
    layer.tape.contribute(index.queries, d.queries);
    layer.tape.contribute(index.keys, d.keys);
    layer.tape.contribute(index.weights, d.weights);
  });
  return chosen;
}

// Records attention of every head's queries to the latent keys of the chosen tokens; the values are the first
// kv_lora_rank columns of the latent keys.
static Id attend(LayerTape& layer, Id queries, Id keys, Id chosen, Id target) {
  const BlockContext& c = layer.context;
  const Mla& a = *layer.model.mla;
  FlashAttention work{c.batch,        layer.heads, 1,
                      c.sequence,     c.sequence,  a.kv_lora_rank + a.qk_rope_head_dim,
                      a.kv_lora_rank, 0,           Direction::forward};
  work.chosen = std::min(layer.model.indexer->top_k, c.sequence);
  const Id y = activation(layer, "latent values", c.rows, layer.heads * a.kv_lora_rank);
  const Id statistics = layer.tape.slot("statistics", c.rows * layer.heads * 4);
  layer.tape.emit("attention", work, {.reads = {queries, keys, chosen}, .writes = {y, statistics}});
  layer.tape.on_backward([=, &layer, &c] {
    FlashAttention back = work;
    back.direction = Direction::backward;
    const Id dq = activation(layer, "queries gradient", c.rows, layer.heads * work.head_dim);
    const Id dk = activation(layer, "latent keys gradient", c.rows, work.head_dim);
    layer.tape.emit(
        "attention gradient", back,
        {.reads = {queries, keys, chosen, y, statistics, layer.tape.gradient(y)}, .writes = {dq, dk, target}});
    layer.tape.contribute(queries, dq);
    layer.tape.contribute(keys, dk);
  });
  return y;
}

Id sparse_latent_attention(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Mla& a = *m.mla;
  const std::int64_t heads = layer.heads, key = a.kv_lora_rank + a.qk_rope_head_dim;
  const Id down =
      replicated(layer, "query down", x, m.hidden, a.q_lora_rank, {.name = "attention.query_down", .bias = m.bias});
  const LatentKeys latent = latent_keys(layer, x);
  const Id compressed = norm(layer, "query norm", down, a.q_lora_rank);
  const Id target = layer.tape.slot("index target", c.rows * std::min(m.indexer->top_k, c.sequence) * 4);
  const Id chosen = chosen_tokens(layer, index_of(layer, x, compressed), target);
  const Id queries =
      column_parallel(layer, "query up", compressed, a.q_lora_rank, heads * (a.qk_nope_head_dim + a.qk_rope_head_dim),
                      {"attention.query_up", Cut::rows, m.bias});
  const std::int32_t up = layer.tape.parameter("attention.key_value_up.weight",
                                               heads * (a.qk_nope_head_dim + a.v_head_dim), a.kv_lora_rank, Cut::rows);
  rotate_rows(layer, "query rotary", queries, c.rows, heads * a.qk_rope_head_dim, a.qk_rope_head_dim);
  const auto by_heads = [&](std::int64_t in, std::int64_t out, std::int64_t from, std::int64_t to) {
    return BatchedProduct{c.rows, in, out, heads, up, c.rows * heads * from * c.width, c.rows * heads * to * c.width};
  };
  const Id absorbed =
      batched_product(layer, "query by keys' projection", queries,
                      by_heads(a.qk_nope_head_dim, a.kv_lora_rank, a.qk_nope_head_dim + a.qk_rope_head_dim, key));
  const Id normed = gather_rows(layer, "latent keys", norm(layer, "key/value norm", latent.compressed, a.kv_lora_rank),
                                a.kv_lora_rank);
  rotate_rows(layer, "key rotary", latent.rope, c.rows, a.qk_rope_head_dim, a.qk_rope_head_dim);
  const Id keys =
      join(layer, "latent keys with positions", normed, latent.rope, c.rows, a.kv_lora_rank, a.qk_rope_head_dim);
  const Id values = attend(layer, absorbed, keys, chosen, target);
  return batched_product(layer, "values' projection", values,
                         by_heads(a.kv_lora_rank, a.v_head_dim, a.kv_lora_rank, a.v_head_dim));
}

// The most bytes of scores that are held at once: longer prompts are scored in parts (vLLM's
// VLLM_SPARSE_INDEXER_MAX_LOGITS_MB, vllm/envs.py; other stacks are taken to do alike).
constexpr Bytes kMostScores = Bytes{512} << 20;

// Records the choice of tokens among those in the cache and the new ones.
static Id served_choice(LayerTape& layer, const Index& index) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const std::int64_t cached = c.spec.generation->cached;
  IndexScores work = {c.batch,
                      m.indexer->heads,
                      c.sequence,
                      index.keys_of_sample,
                      m.indexer->head_dim,
                      std::min(m.indexer->top_k, index.keys_of_sample)};
  work.cached = cached;
  work.cached_row = index_key_bytes(m);
  const Id chosen = layer.tape.slot("chosen tokens", c.rows * work.top_k * 4);
  const Id scores = layer.tape.slot("index scores", std::min(kMostScores, c.rows * index.keys_of_sample * 4));
  BlockBuilder::Uses uses = {.reads = {index.queries, index.keys, index.weights}, .writes = {chosen, scores}};
  if (cached > 0) uses.elsewhere.push_back({Scope::state, Access::read, kKeysValues, -1});
  layer.tape.emit("index scores", work, uses);
  return chosen;
}

Id served_sparse_attention(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const HeadSlots heads = latent_heads(layer, x);
  Index index = index_of(layer, x, heads.query);
  index.keys_of_sample += c.spec.generation->cached;
  const Id chosen = served_choice(layer, index);
  const FlashAttention work = flash_work(layer, whole_part(layer), false);
  const Id y = activation(layer, "attention values", c.rows, layer.heads * value_dim(layer));
  const Id statistics = layer.tape.slot("statistics", c.rows * layer.heads * 4);
  BlockBuilder::Uses uses = {.reads = {heads.queries_keys, heads.qkv, heads.compressed, chosen},
                             .writes = {y, statistics}};
  if (work.cached > 0)
    read_cache(layer, uses);
  else
    uses.weights = {layer.tape.parameter_named("attention.key_value_up.weight")};
  layer.tape.emit("attention", work, uses);
  store_keys(layer, heads);
  layer.tape.emit("index keys to the cache", Cast{c.rows * m.indexer->head_dim, c.width, 1},
                  {.reads = {index.keys}, .elsewhere = {{Scope::state, Access::read_write, kKeysValues, -1}}});
  return y;
}

}  // namespace orrery
