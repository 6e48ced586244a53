// This file records attention over a sequence that is cut over the context group. Keys and values are either passed
// round a ring of sequence blocks while attention over the previous keys and values runs (Liu et al. 2023, Ring
// Attention, 2310.01889), or all-gathered (Llama 3, 2407.21783, section 3.3.2). Within the ranks of one block, an
// all-to-all exchanges heads for positions (Jacobs et al. 2023, DeepSpeed-Ulysses, 2309.14509).
#include "models/layers/context_attention.h"

#include "models/layers/attention.h"
#include "models/layers/latent_attention.h"
#include "models/spec/sequence.h"

namespace orrery {
namespace {

// The buffers and sizes of ring attention, which its forward and backward share.
struct Ring {
  HeadSlots heads;
  AttentionPart part;
  bool gathers = false;
  MoveHeads move;       // copies heads between the projection and a buffer of keys and values
  FlashAttention work;  // attention to the rank's own keys, before keys are passed round the ring
  Bytes bytes = 0;      // bytes of the keys and values of one block of the sequence
  Id own{}, y{}, statistics{};
  bool latent = false;  // whether keys and values already share one packed buffer (latent attention)
};

}  // namespace

// Records the exchange of all heads of this rank's positions for some heads of all positions in its sequence block (the
// all-to-all of DeepSpeed-Ulysses).
static HeadSlots exchange_heads(LayerTape& layer, const HeadSlots& heads) {
  const BlockContext& c = layer.context;
  const MoveHeads split = {c.rows, layer.heads, layer.kv_heads, layer.model.head_dim, c.spec.strategy.context_ulysses};
  const Bytes bytes = split.rows * split.members * split.columns() * c.width;
  const Id sent = layer.tape.slot("heads by member", bytes);
  layer.tape.emit("split heads", split, {.reads = heads.slots(), .writes = {sent}});
  const Id received = all_to_all(layer, "heads exchange", sent, bytes);
  layer.tape.on_backward([=, &layer] {
    MoveHeads back = split;
    back.direction = Direction::backward;
    const Id gradient = all_to_all(layer, "heads gradient exchange", layer.tape.gradient(received), bytes);
    const HeadSlots of = head_gradients(layer, heads, whole_part(layer));
    layer.tape.emit("split heads gradient", back, {.reads = {gradient}, .writes = of.slots()});
  });
  return {received, received};
}

static Id exchange_back(LayerTape& layer, Id y, const AttentionPart& part) {
  const BlockContext& c = layer.context;
  const MoveHeads split = {c.rows, layer.heads, 0, value_dim(layer), c.spec.strategy.context_ulysses};
  const Bytes bytes = c.batch * part.query * part.heads * value_dim(layer) * c.width;
  const Id received = all_to_all(layer, "values exchange", y, bytes);
  const Id joined = activation(layer, "joined values", c.rows, layer.heads * value_dim(layer));
  MoveHeads join = split;
  join.direction = Direction::backward;
  layer.tape.emit("join heads", join, {.reads = {received}, .writes = {joined}});
  layer.tape.on_backward([=, &layer] {
    const Id sent = layer.tape.slot("values gradient by member", bytes);
    layer.tape.emit("join heads gradient", split, {.reads = {layer.tape.gradient(joined)}, .writes = {sent}});
    layer.tape.contribute(y, all_to_all(layer, "values gradient exchange", sent, bytes));
  });
  return joined;
}

// Returns the attention op after keys and values have been passed on `hops` times round the ring. With hops = 0 the
// keys are the rank's own, some of which every mask leaves visible to the rank's queries.
static FlashAttention ring_work(LayerTape& layer, const Ring& ring, std::int64_t hops) {
  const BlockContext& c = layer.context;
  const Strategy& s = c.spec.strategy;
  FlashAttention work = ring.work;
  if (ring.gathers) work.key = c.spec.sequence;
  work.pairs = pairs_of_block(s, c.spec.sequence, c.ring_block, hops, work.window);
  work.hops = hops;
  work.merges = hops > 0;
  return work;
}

static Id gathered_keys(LayerTape& layer, const Ring& ring, const std::string& name) {
  const BlockContext& c = layer.context;
  const Bytes bytes = ring.bytes * c.spec.strategy.context_ring;
  const Id all = layer.tape.slot("gathered keys and values", bytes);
  layer.tape.emit(name, Collective{CollectiveKind::all_gather, Dimension::context, bytes, c.width},
                  {.reads = {ring.own}, .writes = {all}}, LaneKind::context);
  return all;
}

static Id passed_on(LayerTape& layer, const Ring& ring, const std::string& name, Id from) {
  const Id to = layer.tape.slot("received " + name, ring.bytes);
  layer.tape.emit(name + " to the next",
                  Collective{CollectiveKind::shift, Dimension::context, ring.bytes, layer.context.width},
                  {.reads = {from}, .writes = {to}}, LaneKind::context);
  return to;
}

static HeadSlots latent_query_gradients(LayerTape& layer, const Ring& ring) {
  const Id dq = activation(layer, "queries gradient", layer.context.batch * ring.part.query,
                           ring.part.heads * layer.model.head_dim);
  layer.tape.contribute(ring.heads.queries_keys, dq);
  return {dq, dq};
}

static Id added(LayerTape& layer, const Ring& ring, Id a, Id b) {
  const Id sum = layer.tape.slot("sum of gradients", ring.bytes);
  layer.tape.emit("add gradients of keys and values", Add{ring.bytes / layer.context.width},
                  {.reads = {a, b}, .writes = {sum}});
  return sum;
}

static Id scattered(LayerTape& layer, const Ring& ring, Id whole) {
  const BlockContext& c = layer.context;
  const Bytes bytes = ring.bytes * c.spec.strategy.context_ring;
  const Id own = layer.tape.slot("reduced gradient", ring.bytes);
  layer.tape.emit("keys and values gradient scatter",
                  Collective{CollectiveKind::reduce_scatter, Dimension::context, bytes, c.width},
                  {.reads = {whole}, .writes = {own}}, LaneKind::context);
  return own;
}

// Records backward of ring attention: keys and values are passed round the ring again together with their gradients.
// Each rank adds its contribution to the gradients, which end on the rank that owns the keys.
static void ring_backward(LayerTape& layer, const Ring& ring, std::int64_t hops) {
  const HeadSlots of = ring.latent ? latent_query_gradients(layer, ring) : head_gradients(layer, ring.heads, ring.part);
  Id keys = ring.gathers ? gathered_keys(layer, ring, "keys and values gather again") : ring.own;
  std::vector<Id> before;
  Id gradient{};
  for (std::int64_t h = 0; h < hops; ++h) {
    const Id now = keys;
    if (h + 1 < hops) keys = passed_on(layer, ring, "keys and values", now);
    FlashAttention work = ring_work(layer, ring, h);
    work.direction = Direction::backward;
    const Id part = layer.tape.slot("keys and values gradient", work.key / work.query * ring.bytes);
    BlockBuilder::Uses uses = {
        .reads = {ring.heads.queries_keys, now, ring.y, ring.statistics, layer.tape.gradient(ring.y)}, .holds = before};
    (work.merges ? uses.updates : uses.writes) = work.merges ? std::vector{of.queries_keys} : of.slots();
    uses.writes.push_back(part);
    layer.tape.emit("attention gradient", work, uses);
    before = {now};
    if (work.pairs > 0) gradient = h == 0 ? part : added(layer, ring, gradient, part);
    if (!ring.gathers) gradient = passed_on(layer, ring, "gradients of keys and values", gradient);
  }
  if (ring.gathers) gradient = scattered(layer, ring, gradient);
  if (ring.latent) return layer.tape.contribute(ring.heads.qkv, gradient);
  MoveHeads back = ring.move;
  back.direction = Direction::backward;
  layer.tape.emit("keys and values gradient", back, {.reads = {gradient}, .updates = of.slots()});
}

static Id ring_attention(LayerTape& layer, const HeadSlots& heads, const AttentionPart& part, bool windowed) {
  const BlockContext& c = layer.context;
  const Model& m = layer.model;
  Ring ring = {.heads = heads, .part = part, .gathers = c.spec.strategy.context_kind == "allgather"};
  const std::int64_t rows = c.batch * part.query;
  ring.work = flash_work(layer, part, windowed);
  ring.work.keys_apart = true;
  ring.latent = m.mla.has_value();
  if (ring.latent) {
    ring.bytes = rows * part.kv_heads * (m.head_dim + value_dim(layer)) * c.width;
    ring.own = heads.qkv;
  } else {
    ring.move = {rows, part.heads, part.kv_heads, m.head_dim, 1, false};
    ring.bytes = rows * ring.move.columns() * c.width;
    ring.own = layer.tape.slot("keys and values", ring.bytes);
    layer.tape.emit("keys and values", ring.move, {.reads = heads.slots(), .writes = {ring.own}});
  }
  ring.y = activation(layer, "attention values", rows, part.heads * value_dim(layer));
  // `statistics` holds the log-sum-exp of every row of attention scores, in fp32, which backward needs.
  ring.statistics = layer.tape.slot("statistics", rows * part.heads * 4);
  const std::int64_t hops = ring.gathers ? 1 : c.spec.strategy.context_ring;
  Id keys = ring.gathers ? gathered_keys(layer, ring, "keys and values gather") : ring.own;
  // Buffers of the keys and values that attention read in the step before: they are held allocated during this step,
  // because the transfer that passes them on round the ring may still read them.
  std::vector<Id> before;
  for (std::int64_t h = 0; h < hops; ++h) {
    const Id now = keys;
    if (h + 1 < hops) keys = passed_on(layer, ring, "keys and values", now);
    const FlashAttention work = ring_work(layer, ring, h);
    BlockBuilder::Uses uses = {.reads = {heads.queries_keys, now}, .holds = before};
    (work.merges ? uses.updates : uses.writes) = {ring.y, ring.statistics};
    layer.tape.emit("attention", work, uses);
    before = {now};
  }
  layer.tape.on_backward([=, &layer] { ring_backward(layer, ring, hops); });
  return ring.y;
}

Id context_attention(LayerTape& layer, const HeadSlots& heads, bool windowed) {
  const Strategy& s = layer.context.spec.strategy;
  const std::int64_t members = s.context_ulysses;
  const AttentionPart whole = whole_part(layer);
  if (members == 1) return ring_attention(layer, heads, whole, windowed);
  const AttentionPart part = {whole.query * members, whole.heads / members,
                              whole.kv_heads < members ? 1 : whole.kv_heads / members};
  const HeadSlots exchanged = layer.model.mla ? exchange_latent(layer, heads, part) : exchange_heads(layer, heads);
  const bool flash = s.attention == Attention::flash;
  const Id y = s.context_ring > 1 ? ring_attention(layer, exchanged, part, windowed)
               : flash            ? flash_attention(layer, exchanged, part, windowed)
                                  : unfused_attention(layer, exchanged, part, windowed);
  return exchange_back(layer, y, part);
}

Id all_to_all(LayerTape& layer, const std::string& name, Id x, Bytes bytes) {
  const Id y = layer.tape.slot(name + " received", bytes);
  layer.tape.emit(name, Collective{CollectiveKind::all_to_all, Dimension::ulysses, bytes, layer.context.width},
                  {.reads = {x}, .writes = {y}}, LaneKind::context);
  return y;
}

}  // namespace orrery
