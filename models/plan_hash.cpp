#include "models/plan_hash.h"

#include <type_traits>

#include <fmt/format.h>

namespace orrery {
namespace {

// Every number goes through one round of a 64-bit mixer (the finalizer of MurmurHash3, Appleby 2011).
class Hash {
 public:
  template <typename T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
  void add(T x) {
    state_ = (state_ ^ static_cast<std::uint64_t>(x)) * 0xff51afd7ed558ccdULL;
    state_ ^= state_ >> 33;
  }
  void add(const std::string& s) {
    for (const char c : s) add(static_cast<unsigned char>(c));
    add(s.size());
  }
  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15ULL;
};

struct Shapes {
  Hash& h;

  template <typename... T>
  void all(const T&... x) const {
    (h.add(x), ...);
  }
  void operator()(const Gemm& g) const { all(g.m, g.n, g.k, g.batch, g.role, g.accumulate, g.result_bytes); }
  void operator()(const FlashAttention& a) const {
    all(a.batch, a.heads, a.kv_heads, a.query, a.key, a.head_dim, a.value_dim, a.window, a.direction);
  }
  void operator()(const Softmax& s) const { all(s.rows, s.columns, s.dropout, s.fused, s.direction); }
  void operator()(const Normalize& n) const { all(n.rows, n.columns, n.layernorm, n.fused, n.direction); }
  void operator()(const Rotary& r) const { all(r.rows, r.columns, r.fused, r.direction); }
  void operator()(const Activation& a) const { all(a.rows, a.columns, a.gated, a.bias, a.fused, a.direction); }
  void operator()(const Residual& r) const {
    all(r.rows, r.columns, r.residual, r.bias, r.dropout, r.fused, r.direction);
  }
  void operator()(const Add& a) const { all(a.elements); }
  void operator()(const BiasGradient& b) const { all(b.rows, b.columns); }
  void operator()(const Embedding& e) const { all(e.rows, e.columns, e.vocab, e.positions, e.direction); }
  void operator()(const CrossEntropy& c) const { all(c.rows, c.columns, c.part, c.fused); }
  void operator()(const Cast& c) const { all(c.elements, c.from, c.to); }
  void operator()(const Accumulate& a) const { all(a.elements, a.from, a.to); }
  void operator()(const Fill& f) const { all(f.bytes); }
  void operator()(const SquaredNorm& n) const { all(n.elements, n.width); }
  void operator()(const Update& u) const {
    all(u.elements, u.gradient, u.master, u.moment, u.forward, u.moments, u.fused);
  }
  void operator()(const Collective& c) const { all(c.kind, c.group, c.bytes, c.width, c.first, c.algorithm); }
  void operator()(const Transfer& t) const { all(t.send, t.offset, t.bytes); }
};

void add_operands(Hash& h, const std::vector<Operand>& operands) {
  for (const Operand& o : operands) {
    h.add(o.scope);
    h.add(o.access);
    h.add(o.slot);
    h.add(o.parameter);
  }
  h.add(operands.size());
}

}  // namespace

std::string plan_hash(const Plan& plan) {
  Hash h;
  h.add(plan.ranks);
  for (const Op& op : plan.ops) {
    h.add(op.name);
    h.add(op.work.index());
    std::visit(Shapes{h}, op.work);
    for (const auto x : {static_cast<int>(op.phase), static_cast<int>(op.lane), static_cast<int>(op.precision)})
      h.add(x);
    h.add(op.host_waits);
    add_operands(h, op.operands);
    add_operands(h, op.allocates);
    add_operands(h, op.frees);
  }
  for (const Block& block : plan.blocks) {
    for (const Slot& s : block.slots) h.add(s.bytes);
  }
  for (const Frame& f : plan.frames) {
    h.add(f.block);
    h.add(f.first_buffer);
    h.add(f.micro_batch);
  }
  for (const Task& t : plan.tasks) {
    h.add(std::uint64_t{t.op} << 32 | t.frame);
    h.add(std::uint64_t{t.lane} << 32 | t.match);
    h.add(t.flags);
  }
  for (const TaskId d : plan.dependencies) h.add(d);
  for (const TaskId m : plan.match_members) h.add(m);
  for (const GroupTable& table : plan.dimensions) {
    for (const std::int32_t m : table.member_of) h.add(m);
  }
  return fmt::format("{:016x}", h.value());
}

}  // namespace orrery
