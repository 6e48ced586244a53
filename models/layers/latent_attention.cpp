// Latent attention of LayerBuilder (DeepSeek-V2, arXiv 2405.04434, section 2.1): queries, and keys with values, come
// out of compressed, normed vectors that every tensor rank computes whole; heads are cut over the tensor group. The
// rotary part of the keys is one for all heads.
#include "models/layers/layer_builder.h"

namespace orrery {

LayerBuilder::Id LayerBuilder::latent_queries(Id x) {
  const Mla& a = *m_.mla;
  const std::int64_t width = heads_ * (a.qk_nope_head_dim + a.qk_rope_head_dim);
  if (a.q_lora_rank == 0) return column_parallel("query", x, m_.hidden, width, {"attention.query", Cut::rows, m_.bias});
  const Id normed = norm("query norm", x, a.q_lora_rank);
  return column_parallel("query up", normed, a.q_lora_rank, width, {"attention.query_up", Cut::rows, m_.bias});
}

LayerBuilder::LatentKeys LayerBuilder::latent_keys(Id x) {
  const Mla& a = *m_.mla;
  const Id down = replicated("key/value down", x, m_.hidden, a.kv_lora_rank + a.qk_rope_head_dim,
                             {.name = "attention.key_value_down", .bias = m_.bias});
  const Id compressed = activation("compressed keys and values", c_.local_rows, a.kv_lora_rank);
  const Id rope = activation("rope keys", c_.local_rows, a.qk_rope_head_dim);
  const Split work = {c_.local_rows, a.kv_lora_rank, a.qk_rope_head_dim, Direction::forward};
  tape.emit("key/value split", work, {.reads = {down}, .writes = {compressed, rope}});
  tape.on_backward([=, this] {
    Split back = work;
    back.direction = Direction::backward;
    const Id joined = activation("key/value down gradient", c_.local_rows, a.kv_lora_rank + a.qk_rope_head_dim);
    tape.emit("key/value split gradient", back,
              {.reads = {tape.gradient(compressed), tape.gradient(rope)}, .writes = {joined}});
    tape.contribute(down, joined);
  });
  return {compressed, gather_rows("rope keys", rope, a.qk_rope_head_dim)};
}

LayerBuilder::Heads LayerBuilder::assemble(Id queries, Id key_values, Id rope) {
  const Mla& a = *m_.mla;
  const LatentHeads work = {
      c_.rows,           heads_, a.qk_nope_head_dim, a.qk_rope_head_dim, a.v_head_dim, c_.spec.software.fused_rotary,
      Direction::forward};
  const Id packed = activation("keys and values", c_.rows, heads_ * (m_.head_dim + a.v_head_dim));
  tape.emit("latent heads", work, {.reads = {key_values, rope}, .writes = {packed}, .updates = {queries}});
  tape.on_backward([=, this] {
    LatentHeads back = work;
    back.direction = Direction::backward;
    const Id dkv = activation("key/value up gradient", c_.rows, heads_ * (a.qk_nope_head_dim + a.v_head_dim));
    const Id drope = activation("rope keys gradient", c_.rows, a.qk_rope_head_dim);
    tape.emit("latent heads gradient", back,
              {.reads = {tape.gradient(packed)}, .writes = {dkv, drope}, .updates = {tape.gradient(queries)}});
    tape.contribute(key_values, dkv);
    tape.contribute(rope, drope);
  });
  return {queries, packed};
}

// The compressed vectors are kept where the projections up are computed again (Megatron-Core's mla_up_proj).
LayerBuilder::Heads LayerBuilder::latent_heads(Id x) {
  const Mla& a = *m_.mla;
  Id query = x;
  if (a.q_lora_rank > 0)
    query = replicated("query down", x, m_.hidden, a.q_lora_rank, {.name = "attention.query_down", .bias = m_.bias});
  const LatentKeys keys = latent_keys(x);
  const bool again = recompute.mla_up_proj && !recompute.layer;
  if (again) tape.begin_region(true);
  const Id queries = latent_queries(query);
  const std::int64_t width = heads_ * (a.qk_nope_head_dim + a.v_head_dim);
  const Id key_values = column_parallel("key/value up", norm("key/value norm", keys.compressed, a.kv_lora_rank),
                                        a.kv_lora_rank, width, {"attention.key_value_up", Cut::rows, m_.bias});
  const Heads heads = assemble(queries, key_values, keys.rope);
  if (again) tape.end_region();
  return heads;
}

// Exchanges all heads of this rank's positions for some heads of all the block's positions: queries, keys and values by
// themselves, as DeepSpeed-Ulysses exchanges them (2309.14509), since they are of different widths.
LayerBuilder::Heads LayerBuilder::exchange_latent(const Heads& heads, const AttentionPart& part) {
  const Id queries = exchange_kind("queries", heads.queries_keys, m_.head_dim);
  const LatentPair mine = split_latent(heads.qkv);
  const LatentPair all = {exchange_kind("keys", mine.keys, m_.head_dim),
                          exchange_kind("values of keys", mine.values, value_dim())};
  return {queries, join_latent(all, part)};
}

LayerBuilder::Id LayerBuilder::exchange_kind(const std::string& name, Id x, std::int64_t dim) {
  const MoveHeads split = {c_.rows, heads_, 0, dim, c_.spec.strategy.context_ulysses};
  const Bytes bytes = split.rows * split.members * split.columns() * c_.width;
  const Id sent = tape.slot(name + " by member", bytes);
  tape.emit("split " + name, split, {.reads = {x}, .writes = {sent}});
  const Id received = all_to_all(name + " exchange", sent, bytes);
  tape.on_backward([=, this] {
    MoveHeads back = split;
    back.direction = Direction::backward;
    const Id gradient = all_to_all(name + " gradient exchange", tape.gradient(received), bytes);
    const Id dx = activation(name + " gradient", c_.rows, heads_ * dim);
    tape.emit("split " + name + " gradient", back, {.reads = {gradient}, .writes = {dx}});
    tape.contribute(x, dx);
  });
  return received;
}

LayerBuilder::LatentPair LayerBuilder::split_latent(Id packed) {
  const std::int64_t keys = heads_ * m_.head_dim, values = heads_ * value_dim();
  const Split work = {c_.rows, keys, values, Direction::forward};
  const LatentPair apart = {activation("keys", c_.rows, keys), activation("values of keys", c_.rows, values)};
  tape.emit("key/value parts", work, {.reads = {packed}, .writes = {apart.keys, apart.values}});
  tape.on_backward([=, this] {
    Split back = work;
    back.direction = Direction::backward;
    const Id dpacked = activation("keys and values gradient", c_.rows, keys + values);
    tape.emit("key/value parts gradient", back,
              {.reads = {tape.gradient(apart.keys), tape.gradient(apart.values)}, .writes = {dpacked}});
    tape.contribute(packed, dpacked);
  });
  return apart;
}

LayerBuilder::Id LayerBuilder::join_latent(const LatentPair& pair, const AttentionPart& part) {
  const std::int64_t rows = c_.batch * part.query;
  const std::int64_t keys = part.heads * m_.head_dim, values = part.heads * value_dim();
  const Split work = {rows, keys, values, Direction::backward};
  const Id packed = activation("exchanged keys and values", rows, keys + values);
  tape.emit("key/value join", work, {.reads = {pair.keys, pair.values}, .writes = {packed}});
  tape.on_backward([=, this] {
    Split back = work;
    back.direction = Direction::forward;
    const LatentPair d = {activation("keys gradient", rows, keys), activation("values of keys gradient", rows, values)};
    tape.emit("key/value join gradient", back, {.reads = {tape.gradient(packed)}, .writes = {d.keys, d.values}});
    tape.contribute(pair.keys, d.keys);
    tape.contribute(pair.values, d.values);
  });
  return packed;
}

}  // namespace orrery
