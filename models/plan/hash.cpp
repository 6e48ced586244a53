#include "models/plan/hash.h"

#include <bit>
#include <type_traits>

#include <fmt/format.h>

namespace orrery {
namespace {

// The hash of a sequence of numbers: every number goes through one round of a 64-bit mixer (the finalizer of
// MurmurHash3, Appleby 2011).
class Hash {
 public:
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void add(T x) {
    state_ = (state_ ^ static_cast<std::uint64_t>(x)) * 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 33;
  }
  void add(std::string_view s) {
    for (const char c : s) add(static_cast<unsigned char>(c));
    add(s.size());
  }
  template <typename... T>
  void all(const T&... x) {
    (add(x), ...);
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

struct HashedShapes {
  Hash& h;

  template <typename... T>
  void all(const T&... x) const {
    h.all(x...);
  }
  void format(const WeightFormat& f) const { all(f.code, f.group, f.zeros, f.outliers, f.scale_group); }
  void operator()(const Gemm& g) const {
    all(g.m, g.n, g.k, g.batch, g.role, g.accumulate, g.result_bytes, g.heads, g.kv_heads, g.tile, g.tiles, g.pieces,
        g.piece, g.rows);
    if (g.apart > 1) all(g.apart, g.apart_outputs);
    if (g.weights.narrow()) format(g.weights);
  }
  void operator()(const GroupedGemm& g) const {
    all(g.groups, g.rows, g.out, g.in, g.role, g.accumulate, g.result_bytes, g.even);
    if (g.one_kernel) all(g.one_kernel);
    if (g.uneven) all(g.uneven, g.uneven);  // twice, so that it is not taken for one_kernel
    if (g.weights.narrow()) format(g.weights);
    if (g.passed > 0) all(g.passed);
  }
  void operator()(const GroupedBias& b) const { all(b.groups, b.rows, b.columns, b.even, b.weighted, b.direction); }
  void operator()(const Gate& g) const {
    all(g.rows, g.experts, g.top_k, g.capacity, g.groups, g.padded, g.sigmoid, g.corrected,
        std::bit_cast<std::uint64_t>(g.aux_loss), g.direction, g.expert_groups, g.top_groups, g.sharers);
    if (g.hashed) all(g.hashed);
  }
  void operator()(const Permute& p) const { all(p.rows, p.copies, p.columns, p.moved, p.expand, p.weighted); }
  void operator()(const SigmoidGate& g) const { all(g.rows, g.columns, g.direction); }
  void operator()(const SortChunks& s) const {
    all(s.rows, s.columns, s.sources, s.experts, s.weighted, s.even, s.back);
    if (s.distinct > 0) all(s.distinct);
    if (s.pads) all(s.pads);
  }
  void operator()(const CountTokens& c) const { all(c.counts); }
  void operator()(const FlashAttention& a) const {
    all(a.batch, a.heads, a.kv_heads, a.query, a.key, a.head_dim, a.value_dim, a.window, a.direction,
        std::bit_cast<std::uint64_t>(a.softcap), std::bit_cast<std::uint64_t>(a.pairs), a.hops, a.keys_apart, a.merges,
        a.drops);
    if (a.eight_bit) all(a.eight_bit);
    if (a.chosen > 0) all(a.chosen);
    if (a.compressed > 0) all(a.chosen, a.compressed);
    if (a.cached > 0) all(a.cached, a.cached_row);
  }
  void operator()(const MoveHeads& m) const {
    all(m.rows, m.heads, m.kv_heads, m.head_dim, m.members, m.queries, m.direction);
  }
  void operator()(const Softmax& s) const { all(s.rows, s.columns, s.dropout, s.fused, s.direction, s.window); }
  void operator()(const Normalize& n) const {
    all(n.rows, n.columns, n.layernorm, n.fused, n.direction, n.part, n.pieces);
  }
  void operator()(const Rotary& r) const { all(r.rows, r.columns, r.head_dim, r.fused, r.direction); }
  void operator()(const LatentHeads& l) const { all(l.rows, l.heads, l.nope, l.rope, l.value, l.fused, l.direction); }
  void operator()(const Split& s) const { all(s.rows, s.first, s.second, s.direction); }
  void operator()(const Activation& a) const {
    all(a.rows, a.columns, a.gated, a.fused, a.direction, a.weighted);
    if (a.limit > 0) all(std::bit_cast<std::uint64_t>(a.limit));
  }
  void operator()(const Clamp& c) const { all(c.rows, c.columns, std::bit_cast<std::uint64_t>(c.limit), c.direction); }
  void operator()(const Residual& r) const {
    all(r.rows, r.columns, r.residual, r.bias, r.dropout, r.fused, r.direction, r.side.columns, r.side.rows);
  }
  void operator()(const Add& a) const { all(a.elements); }
  void operator()(const BiasGradient& b) const { all(b.rows, b.columns); }
  void operator()(const Embedding& e) const {
    all(e.rows, e.columns, e.vocab, e.positions, e.direction, e.gradient_bytes, e.over, e.panel, e.adds);
  }
  void operator()(const CrossEntropy& c) const {
    all(c.rows, c.columns, c.part, c.fused, c.predictions, c.parts, c.over, c.metrics, c.narrow);
    if (c.weighted) all(c.weighted);
  }
  void operator()(const Distillation& d) const {
    all(d.rows, d.columns, d.part, std::bit_cast<std::uint64_t>(d.temperature),
        std::bit_cast<std::uint64_t>(d.divergence), std::bit_cast<std::uint64_t>(d.cross_entropy));
  }
  void operator()(const FeatureLoss& f) const {
    all(f.rows, f.columns, f.part, std::bit_cast<std::uint64_t>(f.weight));
  }
  void operator()(const Preference& p) const { all(p.rows, p.samples, std::bit_cast<std::uint64_t>(p.beta)); }
  void operator()(const Cast& c) const {
    all(c.elements, c.from, c.to, c.transpose);
    if (c.parts > 1) all(c.parts);
    if (c.own_kernel) all(c.own_kernel);
  }
  void operator()(const Quantize& q) const {
    all(q.format.kind, q.format.block, q.elements, q.pieces, q.wide, q.nodes, q.summands);
  }
  void operator()(const Dequantize& q) const {
    all(q.format.kind, q.format.block, q.elements, q.pieces, q.wide, q.summands, std::bit_cast<std::uint64_t>(q.factor),
        q.adds);
  }
  void operator()(const FakeQuantize& f) const {
    all(f.rows, f.columns, f.fused);
    format(f.format);
  }
  void operator()(const SoftCap& s) const {
    all(s.elements, std::bit_cast<std::uint64_t>(s.cap), s.fused, s.direction);
  }
  void operator()(const Accumulate& a) const { all(a.elements, a.from, a.to); }
  void operator()(const Load& l) const {
    all(l.rows, l.labels, l.ahead, l.predictions, l.parts, l.replicas, l.side.columns, l.side.rows);
  }
  void operator()(const Fill& f) const { all(f.bytes); }
  void operator()(const Multiply& s) const {
    all(s.elements, s.width, std::bit_cast<std::uint64_t>(s.factor), s.check, s.first);
  }
  void operator()(const PlaceCopy& c) const { all(c.bytes, c.from, c.to, c.first, c.elements, c.width); }
  void operator()(const Wait& w) const { all(w.device); }
  void operator()(const Exchange&) const {}
  void operator()(const SquaredNorm& n) const {
    all(n.elements, n.width);
    if (n.of != SquaredNorm::Of::gradients) all(n.of);
  }
  void operator()(const Update& u) const {
    all(u.elements, u.gradient, u.master, u.moment, u.forward, u.moments, u.fused, u.first, u.delayed, u.validated);
    if (u.momentum) all(u.momentum);
    if (u.vectors >= 0) all(u.vectors);
  }
  void operator()(const Orthogonalize& o) const {
    all(o.rows, o.columns, o.matrices, o.iterations, o.first, o.parameter);
  }
  void operator()(const MoveDirections& m) const { all(m.elements, m.from, m.to, m.first, m.back); }
  void operator()(const Collective& c) const {
    all(c.kind, c.group, c.bytes, c.width, c.first, c.algorithm, c.maximum, c.servers, c.copies, c.tensors, c.root);
    if (c.back) all(c.back);
    if (c.group == Dimension::hand_over) all(c.sent, c.columns_cut);
  }
  void operator()(const Transfer& t) const { all(t.send, t.offset, t.bytes, t.first, t.parts); }
  void operator()(const Convolution& c) const {
    all(c.batch, c.sequence, c.columns, c.projected, c.taps, c.direction);
    if (c.keeps) all(c.keeps, c.resumes);
  }
  void operator()(const Scan& s) const {
    all(s.batch, s.sequence, s.heads, s.groups, s.key_dim, s.value_dim, s.chunk, s.first, s.projected, s.rule,
        s.direction);
    if (s.keeps) all(s.keeps, s.resumes);
  }
  void operator()(const GatedNorm& n) const {
    all(n.rows, n.columns, n.width, n.first, n.projected, n.gates_first, n.shared, n.direction);
  }
  void operator()(const IndexScores& i) const {
    all(i.batch, i.heads, i.query, i.key, i.head_dim, i.top_k, i.direction);
    if (i.cached_row > 0) all(i.cached, i.cached_row);
  }
  void operator()(const Pool& p) const { all(p.batch, p.sequence, p.columns, p.rate, p.overlaps, p.direction); }
  void operator()(const MixStreams& m) const { all(m.rows, m.streams, m.columns, m.iterations, m.part, m.direction); }
};

void add_operands(Hash& h, const std::vector<Operand>& operands) {
  for (const Operand& o : operands) {
    h.add(o.scope);
    h.add(o.access);
    h.add(o.slot);
    h.add(o.parameter);
    h.add(o.part);
    h.add(o.tile);
  }
  h.add(operands.size());
}

void add_op(Hash& h, const Op& op) {
  h.add(op.name);
  h.add(op.work.index());
  std::visit(HashedShapes{h}, op.work);
  h.all(op.phase, op.lane, op.precision, op.weight_gradient, op.recompute, op.optimizer, op.host_waits,
        op.runtime_size);
  if (op.within) h.add(std::string("within"));
  if (op.same_call) h.add(std::string("same call"));
  add_operands(h, op.operands);
  add_operands(h, op.allocates);
  add_operands(h, op.frees);
}

void add_block(Hash& h, const Block& block) {
  h.all(block.name, block.role, block.buffers.size(), block.forward.size(), block.backward.size(),
        block.exchange.size(), block.input_gradients);
  for (const BlockBuffer& s : block.buffers)
    h.all(s.name, s.bytes, s.category, s.lazy, s.runtime_size, s.home, s.contiguous);
  h.add(block.fetches);
  for (const std::uint32_t op : block.release) h.add(op);
  for (const RuntimeSize& s : block.runtime_sizes) h.all(s.name, s.predicted, s.bound);
  for (const std::uint32_t op : block.forward) h.add(op);
  for (const std::uint32_t op : block.backward) h.add(op);
  for (const std::uint32_t op : block.exchange) h.add(op);
  for (const LocalParameter& p : block.parameters) {
    h.all(p.name, p.out, p.in, p.offset, p.cut, p.partial, p.kv_rows, p.experts, p.tile, p.tile_first, p.tile_of,
          p.over, p.columns_over.has_value(), p.columns_over.value_or(p.over), p.cut_in_depth);
    for (const std::int64_t rows : p.sections) h.add(rows);
    if (p.frozen) h.all(p.frozen, p.nf4);  // hashed only if true, so that older plans keep their hash
    if (p.format.narrow()) HashedShapes{h}.format(p.format);
  }
}

void add_tasks(Hash& h, const Plan& plan) {
  for (const RankClass& s : plan.classes)
    h.all(s.name, s.stage, s.representative, s.multiplicity, s.begin, s.end, s.frame, s.versions, s.staleness,
          s.server);
  for (const RankClass& s : plan.classes) {
    if (s.validated != kNone) h.all(s.validation, s.validated);
    if (s.second) h.add(s.second);
  }
  for (const Frame& f : plan.frames) {
    h.all(f.block, f.first_buffer, f.next, f.previous, f.unit, f.state, f.weights, f.slot, f.layer, f.micro_batch,
          f.chunk, f.base);
    if (f.frozen_base != 0) h.add(f.frozen_base);
    if (f.beside != kNone) h.add(f.beside);
  }
  for (const Task& t : plan.tasks) h.all(t.op, t.frame, t.lane, t.first_dependency, t.match, t.flags);
  for (const TaskId d : plan.dependencies) h.add(d);
  for (const Match& m : plan.matches) h.all(m.first, m.count);
  for (const TaskId m : plan.match_members) h.add(m);
}

void add_groups(Hash& h, const GroupTable& table) {
  for (const auto& group : table.groups) {
    h.add(group.size());
    for (const std::int32_t rank : group) h.add(rank);
  }
  for (const std::int32_t m : table.member_of) h.add(m);
}

}  // namespace

std::string plan_hash(const Plan& plan) {
  Hash h;
  h.all(plan.ranks, plan.micro_batches, plan.element_bytes, plan.buffers, plan.ops.size(), plan.blocks.size(),
        plan.classes.size(), plan.frames.size(), plan.tasks.size(), plan.dependencies.size(), plan.matches.size(),
        plan.steps, plan.reported, plan.update_every, plan.servers, plan.copies, plan.servers_beside,
        plan.asynchronous_workers, plan.one_queue, plan.steps_overlap, plan.shards_optimizer, plan.shards_gradients);
  for (const Op& op : plan.ops) add_op(h, op);
  for (const Block& block : plan.blocks) add_block(h, block);
  add_tasks(h, plan);
  const auto hands_over = static_cast<std::size_t>(Dimension::hand_over);
  for (std::size_t d = 0; d < plan.dimensions.size(); ++d) {
    const GroupTable& table = plan.dimensions[d];
    // Only plans of two models on ranks of their own have groups of this dimension.
    if (d != hands_over || table.groups.size() < table.member_of.size()) add_groups(h, table);
  }
  for (const std::uint16_t c : plan.kind_of_rank) h.add(c);
  for (const std::int64_t seat : plan.server_seats) h.add(seat);
  for (const Dimension d : plan.meeting) h.add(d);
  return fmt::format("{:016x}", h.value());
}

}  // namespace orrery
