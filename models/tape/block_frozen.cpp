// This file has BlockBuilder's functions for frozen weights: they leave out the backward ops that only frozen weights
// would need.
#include <algorithm>

#include "models/tape/block_builder.h"

namespace orrery {

// Returns whether a backward op is needed. An op is needed if one of its results is a weight's gradient, lies in
// another block's buffer, or is read by a later op of this block. Ops that write nothing are always needed: they send
// gradients on, or wait.
bool BlockBuilder::is_needed(const Op& op, const std::set<Id>& later) const {
  const auto writes = [](const Operand& o) { return o.access != Access::read; };
  const auto read_later = [&](const Operand& o) {
    return writes(o) && (o.scope != Scope::own || later.count(o.slot) != 0);
  };
  return std::ranges::none_of(op.operands, writes) || std::ranges::any_of(op.operands, read_later);
}

// Leaves out unneeded backward ops. Before the first trained weight of the model no backward op remains; after that
// weight, a frozen weight keeps only the op of its input gradient.
void BlockBuilder::leave_out_unneeded() {
  if (!is_frozen) return;
  std::set<Id> read;
  std::vector<Recorded> needed;
  for (auto r = backward_.rbegin(); r != backward_.rend(); ++r) {
    if (!is_needed(r->op, read)) continue;
    for (const Operand& o : r->op.operands) {
      if (o.scope == Scope::own && o.access != Access::write) read.insert(o.slot);
    }
    needed.push_back(std::move(*r));
  }
  backward_.assign(std::make_move_iterator(needed.rbegin()), std::make_move_iterator(needed.rend()));
}

const Op* BlockBuilder::writer_of(Id slot) const {
  for (const std::vector<Recorded>* pass : {&backward_, &forward_}) {
    for (auto r = pass->rbegin(); r != pass->rend(); ++r) {
      const bool writes = std::ranges::any_of(r->op.operands, [&](const Operand& o) {
        return o.scope == Scope::own && o.access != Access::read && o.slot == slot;
      });
      if (writes) return &r->op;
    }
  }
  return nullptr;
}

}  // namespace orrery
