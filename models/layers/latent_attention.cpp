// This file records latent attention (MLA: DeepSeek-V2, arXiv 2405.04434, section 2.1). Queries, and keys with values,
// are projected up from compressed, normalized vectors, which every tensor rank computes completely; heads are cut over
// the tensor group. All heads share the part of the keys that is rotated (RoPE).
#include "models/layers/latent_attention.h"

#include "models/layers/attention.h"
#include "models/layers/context_attention.h"
#include "models/layers/layer_parts.h"
#include "models/layers/linear.h"
#include "models/layers/norms.h"

namespace orrery {
namespace {

struct LatentPair {
  Id keys, values;
};

}  // namespace

// Records the queries of all heads, from the hidden states or, if these were compressed, from the compressed vectors,
// whose norm it puts into `normed`.
static Id latent_queries(LayerTape& layer, Id x, Id& normed) {
  const Model& m = layer.model;
  const Mla& a = *m.mla;
  const std::int64_t width = layer.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim);
  if (a.q_lora_rank == 0)
    return column_parallel(layer, "query", x, m.hidden, width, {"attention.query", Cut::rows, m.bias});
  normed = norm(layer, "query norm", x, a.q_lora_rank);
  return column_parallel(layer, "query up", normed, a.q_lora_rank, width, {"attention.query_up", Cut::rows, m.bias});
}

LatentKeys latent_keys(LayerTape& layer, Id x) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Mla& a = *m.mla;
  const Id down = replicated(layer, "key/value down", x, m.hidden, a.kv_lora_rank + a.qk_rope_head_dim,
                             {.name = "attention.key_value_down", .bias = m.bias});
  const Id compressed = activation(layer, "compressed keys and values", c.local_rows, a.kv_lora_rank);
  const Id rope = activation(layer, "rope keys", c.local_rows, a.qk_rope_head_dim);
  const Split work = {c.local_rows, a.kv_lora_rank, a.qk_rope_head_dim, Direction::forward};
  layer.tape.emit("key/value split", work, {.reads = {down}, .writes = {compressed, rope}});
  layer.tape.on_backward([=, &layer, &c] {
    Split back = work;
    back.direction = Direction::backward;
    const Id joined = activation(layer, "key/value down gradient", c.local_rows, a.kv_lora_rank + a.qk_rope_head_dim);
    layer.tape.emit("key/value split gradient", back,
                    {.reads = {layer.tape.gradient(compressed), layer.tape.gradient(rope)}, .writes = {joined}});
    layer.tape.contribute(down, joined);
  });
  return {compressed, gather_rows(layer, "rope keys", rope, a.qk_rope_head_dim)};
}

static HeadSlots assemble(LayerTape& layer, Id queries, Id key_values, Id rope) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  const Mla& a = *m.mla;
  const LatentHeads work = {c.rows,
                            layer.heads,
                            a.qk_nope_head_dim,
                            a.qk_rope_head_dim,
                            a.v_head_dim,
                            c.spec.software.kernels.fused_rotary,
                            Direction::forward};
  const Id packed = activation(layer, "keys and values", c.rows, layer.heads * (m.head_dim + a.v_head_dim));
  layer.tape.emit("latent heads", work, {.reads = {key_values, rope}, .writes = {packed}, .updates = {queries}});
  layer.tape.on_backward([=, &layer, &c] {
    LatentHeads back = work;
    back.direction = Direction::backward;
    const Id dkv =
        activation(layer, "key/value up gradient", c.rows, layer.heads * (a.qk_nope_head_dim + a.v_head_dim));
    const Id drope = activation(layer, "rope keys gradient", c.rows, a.qk_rope_head_dim);
    layer.tape.emit(
        "latent heads gradient", back,
        {.reads = {layer.tape.gradient(packed)}, .writes = {dkv, drope}, .updates = {layer.tape.gradient(queries)}});
    layer.tape.contribute(key_values, dkv);
    layer.tape.contribute(rope, drope);
  });
  return {queries, packed};
}

// Records the queries, keys and values of latent attention. If the up projections are recomputed in backward
// (Megatron-Core's mla_up_proj), the compressed vectors are kept until then.
HeadSlots latent_heads(LayerTape& layer, Id x) {
  const Model& m = layer.model;
  const Mla& a = *m.mla;
  Id query = x;
  if (a.q_lora_rank > 0)
    query =
        replicated(layer, "query down", x, m.hidden, a.q_lora_rank, {.name = "attention.query_down", .bias = m.bias});
  const LatentKeys keys = latent_keys(layer, x);
  const bool again = layer.recompute.mla_up_proj && !layer.recompute.layer;
  if (again) layer.tape.begin_region(true);
  Id normed{};
  const Id queries = latent_queries(layer, query, normed);
  const std::int64_t width = layer.heads * (a.qk_nope_head_dim + a.v_head_dim);
  const Id compressed = norm(layer, "key/value norm", keys.compressed, a.kv_lora_rank);
  const Id key_values = column_parallel(layer, "key/value up", compressed, a.kv_lora_rank, width,
                                        {"attention.key_value_up", Cut::rows, m.bias});
  HeadSlots heads = assemble(layer, queries, key_values, keys.rope);
  heads.compressed = compressed;
  heads.query = normed;
  if (again) layer.tape.end_region();
  return heads;
}

static Id exchange_kind(LayerTape& layer, const std::string& name, Id x, std::int64_t dim) {
  const BlockContext& c = layer.context;
  const MoveHeads split = {c.rows, layer.heads, 0, dim, c.spec.strategy.context_ulysses};
  const Bytes bytes = split.rows * split.members * split.columns() * c.width;
  const Id sent = layer.tape.slot(name + " by member", bytes);
  layer.tape.emit("split " + name, split, {.reads = {x}, .writes = {sent}});
  const Id received = all_to_all(layer, name + " exchange", sent, bytes);
  layer.tape.on_backward([=, &layer, &c] {
    MoveHeads back = split;
    back.direction = Direction::backward;
    const Id gradient = all_to_all(layer, name + " gradient exchange", layer.tape.gradient(received), bytes);
    const Id dx = activation(layer, name + " gradient", c.rows, layer.heads * dim);
    layer.tape.emit("split " + name + " gradient", back, {.reads = {gradient}, .writes = {dx}});
    layer.tape.contribute(x, dx);
  });
  return received;
}

static LatentPair split_latent(LayerTape& layer, Id packed) {
  const BlockContext& c = layer.context;
  const std::int64_t keys = layer.heads * layer.model.head_dim, values = layer.heads * value_dim(layer);
  const Split work = {c.rows, keys, values, Direction::forward};
  const LatentPair apart = {activation(layer, "keys", c.rows, keys),
                            activation(layer, "values of keys", c.rows, values)};
  layer.tape.emit("key/value parts", work, {.reads = {packed}, .writes = {apart.keys, apart.values}});
  layer.tape.on_backward([=, &layer, &c] {
    Split back = work;
    back.direction = Direction::backward;
    const Id dpacked = activation(layer, "keys and values gradient", c.rows, keys + values);
    layer.tape.emit(
        "key/value parts gradient", back,
        {.reads = {layer.tape.gradient(apart.keys), layer.tape.gradient(apart.values)}, .writes = {dpacked}});
    layer.tape.contribute(packed, dpacked);
  });
  return apart;
}

static Id join_latent(LayerTape& layer, const LatentPair& pair, const AttentionPart& part) {
  const std::int64_t rows = layer.context.batch * part.query;
  const std::int64_t keys = part.heads * layer.model.head_dim, values = part.heads * value_dim(layer);
  const Split work = {rows, keys, values, Direction::backward};
  const Id packed = activation(layer, "exchanged keys and values", rows, keys + values);
  layer.tape.emit("key/value join", work, {.reads = {pair.keys, pair.values}, .writes = {packed}});
  layer.tape.on_backward([=, &layer] {
    Split back = work;
    back.direction = Direction::forward;
    const LatentPair d = {activation(layer, "keys gradient", rows, keys),
                          activation(layer, "values of keys gradient", rows, values)};
    layer.tape.emit("key/value join gradient", back,
                    {.reads = {layer.tape.gradient(packed)}, .writes = {d.keys, d.values}});
    layer.tape.contribute(pair.keys, d.keys);
    layer.tape.contribute(pair.values, d.values);
  });
  return packed;
}

HeadSlots exchange_latent(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part) {
  const Model& m = layer.model;
  const Id queries = exchange_kind(layer, "queries", heads.queries_keys, m.head_dim);
  const LatentPair mine = split_latent(layer, heads.qkv);
  const LatentPair all = {exchange_kind(layer, "keys", mine.keys, m.head_dim),
                          exchange_kind(layer, "values of keys", mine.values, value_dim(layer))};
  return {queries, join_latent(layer, all, part)};
}

}  // namespace orrery
