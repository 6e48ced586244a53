// BlockBuilder: leaves out what backward would do for weights that do not train alone.
#include <algorithm>

#include "models/layers/block_builder.h"

namespace orrery {

// Whether something is left of an op's results: a weight's gradient, a buffer of another block, or a buffer of this
// block that a later op reads. Ops that write nothing send gradients on, or wait.
bool BlockBuilder::is_needed(const Op& op, const std::set<Id>& later) const {
  const auto writes = [](const Operand& o) { return o.access != Access::read; };
  const auto read_later = [&](const Operand& o) {
    return writes(o) && (o.scope != Scope::own || later.count(o.slot) != 0);
  };
  return std::ranges::none_of(op.operands, writes) || std::ranges::any_of(op.operands, read_later);
}

// Below the first weight that trains nothing of backward is left, and above it only input gradients of what is frozen.
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

}  // namespace orrery
