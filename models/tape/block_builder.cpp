#include "models/tape/block_builder.h"

#include <algorithm>
#include <cassert>
#include <set>

namespace orrery {
namespace {

bool writes(const Operand& o) { return o.access != Access::read; }
bool reads(const Operand& o) { return o.access != Access::write; }
bool is(const Operand& o, Scope scope, std::uint16_t slot) { return o.scope == scope && o.slot == slot; }

bool uses(const Op& op, Scope scope, std::uint16_t slot) {
  return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& o) { return is(o, scope, slot); });
}

}  // namespace

BlockBuilder::BlockBuilder(std::string name, BlockRole role, Precision precision, Scope weights, Id weight_slot,
                           Scope gradients, Id gradient_slot)
    : precision_(precision),
      weights_(weights),
      gradients_(gradients),
      weight_slot_(weight_slot),
      gradient_slot_(gradient_slot) {
  block_.name = std::move(name);
  block_.role = role;
  block_.buffers = {{"input", 0}, {"output gradient", 0}};
}

BlockBuilder::Id BlockBuilder::slot(const std::string& name, Bytes bytes, Category category) {
  block_.buffers.push_back({name, bytes, category});
  return static_cast<Id>(block_.buffers.size() - 1);
}

BlockBuilder::Id BlockBuilder::input(Bytes bytes) {
  block_.buffers[kInput].bytes = bytes;
  return kInput;
}

BlockBuilder::Id BlockBuilder::output_gradient(Bytes bytes) {
  block_.buffers[kOutputGradient].bytes = bytes;
  return kOutputGradient;
}

BlockBuilder::Id BlockBuilder::input_beside(const std::string& name, Bytes bytes) {
  const Id id = slot(name, bytes);
  beside_.insert(id);
  return id;
}

std::int32_t BlockBuilder::runtime_size(RuntimeSize size) {
  block_.runtime_sizes.push_back(std::move(size));
  return static_cast<std::int32_t>(block_.runtime_sizes.size() - 1);
}

BlockBuilder::Id BlockBuilder::slot_of_rows(const std::string& name, Bytes bytes, std::int32_t runtime_size) {
  const Id id = slot(name, bytes);
  block_.buffers[id].runtime_size = runtime_size;
  return id;
}

std::int32_t BlockBuilder::parameter(const std::string& name, std::int64_t out, std::int64_t in, Cut cut, bool partial,
                                     std::int64_t kv_rows, std::int64_t experts) {
  return parameter(
      {.name = name, .out = out, .in = in, .cut = cut, .partial = partial, .experts = experts, .kv_rows = kv_rows});
}

std::int32_t BlockBuilder::parameter(LocalParameter p) {
  p.name = prefix + p.name;
  p.frozen = is_frozen && is_frozen(p.name);
  p.nf4 = p.frozen && is_nf4(p.name, p.in);
  const std::int64_t elements = p.out * p.in;
  if (format_of) p.format = format_of(p.name, p.in);
  if (p.frozen) {
    const bool narrow = p.format.narrow();
    p.stored = p.nf4    ? narrow_bytes(kNf4Format, elements)
               : narrow ? weight_bytes(p.format, p.out, p.in, std::max<std::int64_t>(1, p.experts))
                        : elements * units_of_a_wide_weight;
  }
  std::int64_t& before = p.frozen ? block_.frozen_units : block_.parameter_elements;
  p.offset = before;
  before += p.frozen ? p.stored : elements;
  block_.parameters.push_back(std::move(p));
  return static_cast<std::int32_t>(block_.parameters.size() - 1);
}

std::int32_t BlockBuilder::parameter_named(const std::string& name) const {
  const auto it = std::find_if(block_.parameters.begin(), block_.parameters.end(),
                               [&](const LocalParameter& p) { return p.name == prefix + name; });
  assert(it != block_.parameters.end());
  return static_cast<std::int32_t>(it - block_.parameters.begin());
}

std::vector<std::int32_t> BlockBuilder::tiled_parameter(const std::string& name, std::int64_t out, std::int64_t in,
                                                        Cut cut, std::int64_t tiles) {
  std::vector<std::int32_t> list;
  for (std::int64_t i = 0; i < tiles; ++i) {
    list.push_back(parameter(name, out / tiles, in, cut));
    if (tiles == 1) continue;
    LocalParameter& p = block_.parameters.back();
    p.tile = ++tiles_;
    p.tile_first = i * (out / tiles);
    p.tile_of = out;
  }
  return list;
}

// Gives parameters their offsets in their unit (weights that are gathered together): first the weights that are
// gathered and reduced together, then the tiles (parts of large weights), each of which is gathered by itself.
void BlockBuilder::place_parameters() {
  if (tiles_ == 0 || weights_ != Scope::unit) return;
  std::int64_t offset = 0;
  for (const bool tile : {false, true}) {
    for (LocalParameter& p : block_.parameters) {
      if ((p.tile > 0) != tile) continue;
      p.offset = offset;
      offset += p.out * p.in;
    }
  }
}

// Returns the operand of a weight or of its gradient. If parameters are sharded, the weights and gradients of a tile (a
// part of a large weight that is gathered by itself) lie in a frame of their own.
Operand BlockBuilder::weight_operand(std::int32_t parameter, bool gradient) const {
  const std::uint16_t tile = weights_ == Scope::unit ? block_.parameters[parameter].tile : std::uint16_t{0};
  if (gradient) return {gradients_, Access::read_write, gradient_slot_, parameter, Part::all, tile};
  const Id slot = block_.parameters[parameter].frozen ? frozen_slot : weight_slot_;
  return {weights_, Access::read, slot, parameter, Part::all, tile};
}

void BlockBuilder::begin_region(bool recompute) { region_ = recompute ? ++regions_ : 0; }
void BlockBuilder::end_region() { region_ = 0; }

void BlockBuilder::emit(const std::string& name, const Work& work, const Uses& u, LaneKind lane) {
  Op op{.name = name,
        .work = work,
        .phase = in_backward_ ? Phase::backward : Phase::forward,
        .lane = lane,
        .precision = precision_,
        .host_waits = u.host_waits,
        .within = u.within,
        .same_call = u.same_call};
  if (!u.weights.empty() && block_.parameters[u.weights[0]].frozen) {
    const WeightFormat& format = block_.parameters[u.weights[0]].format;
    if (auto* g = std::get_if<Gemm>(&op.work)) g->weights = format;
    if (auto* g = std::get_if<GroupedGemm>(&op.work)) g->weights = format;
  }
  for (const std::vector<Id>* slots : {&u.reads, &u.updates, &u.writes}) {
    for (const Id s : *slots) op.runtime_size = std::max(op.runtime_size, block_.buffers[s].runtime_size);
  }
  for (const Id s : u.reads) op.operands.push_back({Scope::own, Access::read, s, -1});
  for (const std::int32_t p : u.weights) op.operands.push_back(weight_operand(p, false));
  for (const Id n : u.numbers) op.operands.push_back({Scope::rank, Access::read, n, -1});
  for (const Operand& o : u.elsewhere) {
    op.operands.push_back(o);
    op.weight_gradient = op.weight_gradient || (o.access != Access::read && !forward_only);
  }
  for (const Id s : u.updates) op.operands.push_back({Scope::own, Access::read_write, s, -1});
  for (const Id s : u.writes) op.operands.push_back({Scope::own, Access::write, s, -1});
  for (const std::int32_t p : u.weight_gradients) {
    if (block_.parameters[p].frozen) continue;
    op.operands.push_back(weight_operand(p, true));
    op.weight_gradient = true;
  }
  // An op that writes nothing but the gradients of frozen weights is left out.
  if (!u.weight_gradients.empty() && std::none_of(op.operands.begin(), op.operands.end(), writes)) return;
  (in_backward_ ? backward_ : forward_).push_back({std::move(op), in_backward_ ? 0 : region_, u.holds, graph_});
}

void BlockBuilder::contribute(Id of, Id gradient) {
  const auto [it, first] = gradient_of_.try_emplace(of, gradient);
  if (first) return;
  const Bytes bytes = block_.buffers[gradient].bytes;
  const Id sum = slot_of_rows("gradient sum", bytes, block_.buffers[gradient].runtime_size);
  emit("gradient sum", Add{bytes / storage_bytes(precision_)}, {.reads = {it->second, gradient}, .writes = {sum}});
  it->second = sum;
}

BlockBuilder::Id BlockBuilder::gradient(Id of) const { return gradient_of_.at(of); }

void BlockBuilder::run_backward() {
  in_backward_ = true;
  for (auto record = tape_.rbegin(); record != tape_.rend(); ++record) {
    graph_ = record->graph;
    record->emit();
  }
  graph_ = 0;
}

// Returns the gradients that a backward op reads: the block's output gradient, and buffers that backward has written so
// far.
std::vector<Operand> BlockBuilder::gradients_read(const Op& op, const std::vector<Recorded>& backward) const {
  std::set<Id> written = {kOutputGradient};
  for (const Recorded& r : backward) {
    if (r.op.recompute) continue;
    for (const Operand& o : r.op.operands) {
      if (writes(o) && o.scope == Scope::own) written.insert(o.slot);
    }
  }
  std::vector<Operand> found;
  for (const Operand& o : op.operands) {
    if (reads(o) && o.scope == Scope::own && written.count(o.slot) != 0) found.push_back(o);
  }
  return found;
}

// Inserts the ops of recompute regions into backward. The complete region runs again before the first backward op that
// reads one of its results, as a checkpointed function does; regions whose results this region reads run before it. A
// framework calls backward of a checkpointed function with the gradient of its result (PyTorch:
// torch/utils/checkpoint.py), so no region runs again before the gradients that this first op reads have been computed.
void BlockBuilder::insert_recomputation() {
  std::map<Id, int> region_of;  // for each buffer, the number of the recompute region that first writes it
  for (const Recorded& r : forward_) {
    for (const Operand& w : r.op.operands) {
      if (writes(w) && w.scope == Scope::own) region_of.try_emplace(w.slot, r.region);
    }
  }
  const auto region_writing = [&](const Operand& o) {
    if (o.scope != Scope::own || !reads(o) || kept_.count(o.slot) != 0) return 0;
    const auto it = region_of.find(o.slot);
    return it == region_of.end() ? 0 : it->second;
  };
  std::vector<Recorded> result;
  std::map<Id, Id> scratch;
  std::set<int> done = {0};
  const std::function<void(const Op&, int)> require = [&](const Op& op, int inside) {
    for (const Operand& o : op.operands) {
      const int region = region_writing(o);
      if (region == inside || !done.insert(region).second) continue;
      for (const Recorded& r : forward_) {
        if (r.region == region) require(r.op, region);
      }
      for (const Recorded& r : forward_) {
        if (r.region == region) result.push_back(run_again(r, scratch));
      }
    }
  };
  for (const Recorded& r : backward_) {
    const std::size_t first = result.size();
    require(r.op, 0);
    if (result.size() > first) result[first].op.waits_for = gradients_read(r.op, result);
    result.push_back(r);
  }
  backward_ = std::move(result);
}

BlockBuilder::Recorded BlockBuilder::run_again(Recorded r, std::map<Id, Id>& scratch) {
  r.op.phase = Phase::backward;
  r.op.recompute = true;
  r.op.name += " again";
  for (Operand& o : r.op.operands) {
    if (o.scope != Scope::own || kept_.count(o.slot) == 0) continue;
    const auto it = scratch.find(o.slot);
    if (it == scratch.end()) {
      const BlockBuffer& kept = block_.buffers[o.slot];
      scratch[o.slot] = slot_of_rows(kept.name + " again", kept.bytes, kept.runtime_size);
    }
    o.slot = scratch.at(o.slot);
  }
  return r;
}

void BlockBuilder::finish_backward() {
  insert_recomputation();
  block_.input_gradients = static_cast<std::uint32_t>(backward_.size());
  if (splits_backward) put_weight_gradients_last();
}

void BlockBuilder::replace(Scope scope, Id slot, Scope with, Id with_slot, std::vector<Recorded>& pass) {
  for (Recorded& r : pass) {
    for (Operand& o : r.op.operands) {
      if (is(o, scope, slot)) o = {with, o.access, with_slot, o.parameter, o.part, o.tile};
    }
  }
}

// Returns, for each of the block's buffers, the first and the last op of a pass that use it.
std::vector<BlockBuilder::Use> BlockBuilder::uses_of_own(std::vector<Recorded>& pass) const {
  std::vector<Use> found(block_.buffers.size());
  for (Recorded& r : pass) {
    const auto note = [&](Id slot) {
      if (found[slot].first == nullptr) found[slot].first = &r.op;
      found[slot].last = &r.op;
    };
    for (const Id slot : r.holds) note(slot);
    for (const Operand& o : r.op.operands) {
      if (o.scope != Scope::own) continue;
      // An op that waits for a copy to host memory counts as a use of the device's buffer but not of the host's, whose
      // lifetime it must not extend.
      const bool waits = std::holds_alternative<Wait>(r.op.work) && block_.buffers[o.slot].home != MemoryTier::device;
      if (!waits) note(o.slot);
    }
  }
  return found;
}

// Sets a buffer's lifetime, from its first writer to its last user. A buffer that backward overwrites without reading
// has two lifetimes: one in forward and one in backward.
void BlockBuilder::own_lifetime(Id slot, const Use& forward, const Use& backward) {
  const auto [f_first, f_last] = forward;
  const auto [b_first, b_last] = backward;
  // `early_` has an entry for this buffer only if the buffer keeps a weight's gradient for the second part of backward
  const auto early = early_.find(slot);
  const Operand buffer = {Scope::own, Access::write, slot, early == early_.end() ? -1 : early->second};
  const auto starts_anew = [&](const Op* op) {
    return std::any_of(op->operands.begin(), op->operands.end(),
                       [&](const Operand& o) { return is(o, Scope::own, slot) && o.access == Access::write; });
  };
  // Inputs and output gradients are allocated by the neighbouring block that writes them.
  const bool given = slot == kInput || beside_.count(slot) != 0;
  if (f_first != nullptr && !given) f_first->allocates.push_back(buffer);
  const bool anew = b_first != nullptr && starts_anew(b_first);
  if (anew && slot != kOutputGradient) b_first->allocates.push_back(buffer);
  if (slot == kInput && leaves_input) return;
  if (f_last != nullptr && (b_first == nullptr || anew)) f_last->frees.push_back(buffer);
  if (b_last != nullptr) b_last->frees.push_back(buffer);
}

void BlockBuilder::boundary_lifetimes() {
  const auto take_at_first = [](std::vector<Recorded>& pass, Scope scope, Id slot) {
    for (Recorded& r : pass) {
      if (!uses(r.op, scope, slot)) continue;
      r.op.allocates.push_back({scope, Access::write, slot, -1});
      return;
    }
  };
  if (reads_beside && !free_beside(backward_)) free_beside(forward_);
  take_at_first(forward_, Scope::next, handed_to);
  take_at_first(backward_, Scope::previous, kOutputGradient);
}

void BlockBuilder::set_lifetimes() {
  unit_lifetimes();
  const std::vector<Use> forward = uses_of_own(forward_), backward = uses_of_own(backward_);
  for (std::size_t s = 0; s < block_.buffers.size(); ++s) own_lifetime(static_cast<Id>(s), forward[s], backward[s]);
  boundary_lifetimes();
}

Block BlockBuilder::hand_over(std::vector<Op>& ops) {
  join_graphs(forward_);
  join_graphs(backward_);
  const auto move_all = [&](std::vector<Recorded>& pass, std::vector<std::uint32_t>& ids) {
    for (Recorded& r : pass) {
      ids.push_back(static_cast<std::uint32_t>(ops.size()));
      ops.push_back(std::move(r.op));
    }
  };
  move_all(forward_, block_.forward);
  if (exchange_ < block_.forward.size()) {
    const auto first = block_.forward.begin() + static_cast<std::ptrdiff_t>(exchange_);
    block_.exchange.assign(first, block_.forward.end());
    block_.forward.erase(first, block_.forward.end());
  }
  if (releases_) {
    block_.release = {block_.forward.back()};
    block_.forward.pop_back();
  }
  move_all(backward_, block_.backward);
  place_parameters();
  block_.second = second;
  return std::move(block_);
}

Block BlockBuilder::finish(Id output, std::vector<Op>& ops) {
  contribute(output, kOutputGradient);
  run_backward();
  if (input_trains) hand_gradient_on();
  leave_out_unneeded();
  // If a recompute region ends the block, it runs again completely, as a checkpointed function does; the block's output
  // that it then computes again is not used.
  keep(output);
  finish_backward();
  keep_fresh_gradients();
  replace(Scope::own, output, Scope::next, handed_to, forward_);
  store_activations();
  set_lifetimes();
  return hand_over(ops);
}

Block BlockBuilder::finish(std::vector<Op>& ops) {
  run_backward();
  if (input_trains) hand_gradient_on();
  leave_out_unneeded();
  finish_backward();
  keep_fresh_gradients();
  set_lifetimes();
  return hand_over(ops);
}

}  // namespace orrery
