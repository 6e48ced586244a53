// Attention of a sequence that is cut over the context group: keys and values go round a ring of blocks under the
// attention of those before (Liu et al. 2023, Ring Attention, 2310.01889), or are gathered (Llama 3, 2407.21783,
// section 3.3.2); inside a block ranks exchange heads for positions (Jacobs et al. 2023, DeepSpeed-Ulysses,
// 2309.14509).
#include "models/layers/layer_builder.h"
#include "models/spec/sequence.h"

namespace orrery {

// One attention over a ring, with what its backward needs again.
struct LayerBuilder::Ring {
  Heads heads;
  AttentionPart part;
  bool gathers = false;
  MoveHeads move;       // copies heads between the projection and a buffer of keys and values
  FlashAttention work;  // attention of the first hop
  Bytes bytes = 0;      // bytes of the keys and values of a block
  Id own{}, y{}, statistics{};
  bool latent = false;  // latent attention: keys and values lie packed already
};

LayerBuilder::Id LayerBuilder::context_attention(const Heads& heads, bool windowed) {
  const Strategy& s = c_.spec.strategy;
  const std::int64_t members = s.context_ulysses;
  const AttentionPart whole = whole_part();
  if (members == 1) return ring_attention(heads, whole, windowed);
  const AttentionPart part = {whole.query * members, whole.heads / members,
                              whole.kv_heads < members ? 1 : whole.kv_heads / members};
  const Heads exchanged = m_.mla ? exchange_latent(heads, part) : exchange_heads(heads);
  const bool flash = s.attention == Attention::flash;
  const Id y = s.context_ring > 1 ? ring_attention(exchanged, part, windowed)
               : flash            ? flash_attention(exchanged, part, windowed)
                                  : unfused_attention(exchanged, part, windowed);
  return exchange_back(y, part);
}

LayerBuilder::Id LayerBuilder::all_to_all(const std::string& name, Id x, Bytes bytes) {
  const Id y = tape.slot(name + " received", bytes);
  tape.emit(name, Collective{CollectiveKind::all_to_all, Dimension::ulysses, bytes, c_.width},
            {.reads = {x}, .writes = {y}}, LaneKind::context);
  return y;
}

// Exchanges all heads of this rank's positions for some heads of all positions in the ring's block (DeepSpeed-Ulysses).
LayerBuilder::Heads LayerBuilder::exchange_heads(const Heads& heads) {
  const MoveHeads split = {c_.rows, heads_, kv_heads_, m_.head_dim, c_.spec.strategy.context_ulysses};
  const Bytes bytes = split.rows * split.members * split.columns() * c_.width;
  const Id sent = tape.slot("heads by member", bytes);
  tape.emit("split heads", split, {.reads = heads.slots(), .writes = {sent}});
  const Id received = all_to_all("heads exchange", sent, bytes);
  tape.on_backward([=, this] {
    MoveHeads back = split;
    back.direction = Direction::backward;
    const Id gradient = all_to_all("heads gradient exchange", tape.gradient(received), bytes);
    const Heads of = head_gradients(heads, whole_part());
    tape.emit("split heads gradient", back, {.reads = {gradient}, .writes = of.slots()});
  });
  return {received, received};
}

LayerBuilder::Id LayerBuilder::exchange_back(Id y, const AttentionPart& part) {
  const MoveHeads split = {c_.rows, heads_, 0, value_dim(), c_.spec.strategy.context_ulysses};
  const Bytes bytes = c_.batch * part.query * part.heads * value_dim() * c_.width;
  const Id received = all_to_all("values exchange", y, bytes);
  const Id joined = activation("joined values", c_.rows, heads_ * value_dim());
  MoveHeads join = split;
  join.direction = Direction::backward;
  tape.emit("join heads", join, {.reads = {received}, .writes = {joined}});
  tape.on_backward([=, this] {
    const Id sent = tape.slot("values gradient by member", bytes);
    tape.emit("join heads gradient", split, {.reads = {tape.gradient(joined)}, .writes = {sent}});
    tape.contribute(y, all_to_all("values gradient exchange", sent, bytes));
  });
  return joined;
}

LayerBuilder::Id LayerBuilder::ring_attention(const Heads& heads, const AttentionPart& part, bool windowed) {
  Ring ring = {.heads = heads, .part = part, .gathers = c_.spec.strategy.context_kind == "allgather"};
  const std::int64_t rows = c_.batch * part.query;
  ring.work = flash_work(part, windowed);
  ring.work.keys_apart = true;
  ring.latent = m_.mla.has_value();
  if (ring.latent) {
    ring.bytes = rows * part.kv_heads * (m_.head_dim + value_dim()) * c_.width;
    ring.own = heads.qkv;
  } else {
    ring.move = {rows, part.heads, part.kv_heads, m_.head_dim, 1, false};
    ring.bytes = rows * ring.move.columns() * c_.width;
    ring.own = tape.slot("keys and values", ring.bytes);
    tape.emit("keys and values", ring.move, {.reads = heads.slots(), .writes = {ring.own}});
  }
  ring.y = activation("attention values", rows, part.heads * value_dim());
  ring.statistics = tape.slot("statistics", rows * part.heads * 4);  // log-sum-exp of every row, fp32
  const std::int64_t hops = ring.gathers ? 1 : c_.spec.strategy.context_ring;
  Id keys = ring.gathers ? gathered_keys(ring, "keys and values gather") : ring.own;
  // Earlier keys and values that the transfer of the current ones still reads.
  std::vector<Id> before;
  for (std::int64_t h = 0; h < hops; ++h) {
    const Id now = keys;
    if (h + 1 < hops) keys = passed_on(ring, "keys and values", now);
    const FlashAttention work = ring_work(ring, h);
    BlockBuilder::Uses uses = {.reads = {heads.queries_keys, now}, .holds = before};
    (work.merges ? uses.updates : uses.writes) = {ring.y, ring.statistics};
    tape.emit("attention", work, uses);
    before = {now};
  }
  tape.on_backward([=, this] { ring_backward(ring, hops); });
  return ring.y;
}

// The attention that is left after so many hops. The first keys are the rank's own, of which it always sees some.
FlashAttention LayerBuilder::ring_work(const Ring& ring, std::int64_t hops) const {
  const Strategy& s = c_.spec.strategy;
  FlashAttention work = ring.work;
  if (ring.gathers) work.key = c_.spec.sequence;
  work.pairs = pairs_of_block(s, c_.spec.sequence, c_.ring_block, hops, work.window);
  work.hops = hops;
  work.merges = hops > 0;
  return work;
}

LayerBuilder::Id LayerBuilder::gathered_keys(const Ring& ring, const std::string& name) {
  const Bytes bytes = ring.bytes * c_.spec.strategy.context_ring;
  const Id all = tape.slot("gathered keys and values", bytes);
  tape.emit(name, Collective{CollectiveKind::all_gather, Dimension::context, bytes, c_.width},
            {.reads = {ring.own}, .writes = {all}}, LaneKind::context);
  return all;
}

LayerBuilder::Id LayerBuilder::passed_on(const Ring& ring, const std::string& name, Id from) {
  const Id to = tape.slot("received " + name, ring.bytes);
  tape.emit(name + " to the next", Collective{CollectiveKind::shift, Dimension::context, ring.bytes, c_.width},
            {.reads = {from}, .writes = {to}}, LaneKind::context);
  return to;
}

// Backward of a ring: keys and values go round again; their gradients follow them, each rank adding its part, until
// they are back on their own rank.
void LayerBuilder::ring_backward(const Ring& ring, std::int64_t hops) {
  const Heads of = ring.latent ? latent_query_gradients(ring) : head_gradients(ring.heads, ring.part);
  Id keys = ring.gathers ? gathered_keys(ring, "keys and values gather again") : ring.own;
  std::vector<Id> before;
  Id gradient{};
  for (std::int64_t h = 0; h < hops; ++h) {
    const Id now = keys;
    if (h + 1 < hops) keys = passed_on(ring, "keys and values", now);
    FlashAttention work = ring_work(ring, h);
    work.direction = Direction::backward;
    const Id part = tape.slot("keys and values gradient", work.key / work.query * ring.bytes);
    BlockBuilder::Uses uses = {.reads = {ring.heads.queries_keys, now, ring.y, ring.statistics, tape.gradient(ring.y)},
                               .holds = before};
    (work.merges ? uses.updates : uses.writes) = work.merges ? std::vector{of.queries_keys} : of.slots();
    uses.writes.push_back(part);
    tape.emit("attention gradient", work, uses);
    before = {now};
    if (work.pairs > 0) gradient = h == 0 ? part : added(ring, gradient, part);
    if (!ring.gathers) gradient = passed_on(ring, "gradients of keys and values", gradient);
  }
  if (ring.gathers) gradient = scattered(ring, gradient);
  if (ring.latent) return tape.contribute(ring.heads.qkv, gradient);
  MoveHeads back = ring.move;
  back.direction = Direction::backward;
  tape.emit("keys and values gradient", back, {.reads = {gradient}, .updates = of.slots()});
}

LayerBuilder::Heads LayerBuilder::latent_query_gradients(const Ring& ring) {
  const Id dq = activation("queries gradient", c_.batch * ring.part.query, ring.part.heads * m_.head_dim);
  tape.contribute(ring.heads.queries_keys, dq);
  return {dq, dq};
}

LayerBuilder::Id LayerBuilder::added(const Ring& ring, Id a, Id b) {
  const Id sum = tape.slot("sum of gradients", ring.bytes);
  tape.emit("add gradients of keys and values", Add{ring.bytes / c_.width}, {.reads = {a, b}, .writes = {sum}});
  return sum;
}

LayerBuilder::Id LayerBuilder::scattered(const Ring& ring, Id whole) {
  const Bytes bytes = ring.bytes * c_.spec.strategy.context_ring;
  const Id own = tape.slot("reduced gradient", ring.bytes);
  tape.emit("keys and values gradient scatter",
            Collective{CollectiveKind::reduce_scatter, Dimension::context, bytes, c_.width},
            {.reads = {whole}, .writes = {own}}, LaneKind::context);
  return own;
}

}  // namespace orrery
