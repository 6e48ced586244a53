// This file has BlockBuilder's functions for the lifetimes of gathered weights, and of gradients that are reduced unit
// by unit (a unit: weights that are gathered and reduced together).
#include <algorithm>

#include "models/tape/block_builder.h"

namespace orrery {

// Sets lifetimes of tiles (parts of large weights that are gathered one by one): a tile's weights are freed after each
// of their uses, and its gradient is allocated by the one op that writes it.
void BlockBuilder::tile_lifetimes(std::vector<Recorded>& pass) {
  for (Recorded& r : pass) {
    for (const Operand o : std::vector<Operand>(r.op.operands)) {
      if (o.tile == 0) continue;
      const bool gradient = o.slot == gradient_slot_;
      (gradient ? r.op.allocates : r.op.frees)
          .push_back({Scope::unit, gradient ? Access::write : Access::read, o.slot, -1, Part::all, o.tile});
    }
  }
}

// Sets lifetimes of a unit's weights (those gathered together) and of their gradient. Gathered weights are freed after
// their last use in a pass, or at the pass's end if nothing uses them (an embedding's backward). The gradient is
// allocated by its first writer and freed by the op that reduces it.
void BlockBuilder::unit_lifetimes() {
  tile_lifetimes(forward_);
  tile_lifetimes(backward_);
  const auto uses_unit = [](const Op& op, Id slot) {
    return std::any_of(op.operands.begin(), op.operands.end(), [&](const Operand& o) {
      return o.scope == Scope::unit && o.slot == slot && o.tile == 0 && o.part == Part::all;
    });
  };
  const auto last_use = [&](std::vector<Recorded>& pass) {
    return std::find_if(pass.rbegin(), pass.rend(), [&](const Recorded& r) {
      return uses_unit(r.op, weight_slot_) || (block_.frozen_units > 0 && uses_unit(r.op, frozen_slot));
    });
  };
  const auto free_last = [&](std::vector<Recorded>& pass) {
    const auto last = last_use(pass);
    Op& op = (last == pass.rend() ? pass.rbegin() : last)->op;
    if (block_.parameter_elements > 0) op.frees.push_back({Scope::unit, Access::read, weight_slot_, -1});
    if (block_.frozen_units > 0) op.frees.push_back({Scope::unit, Access::read, frozen_slot, -1});
  };
  if (weights_ == Scope::unit && frees_gathered && !block_.parameters.empty()) {
    // runs_back: whether the weights are gathered again for backward; the condition is the same as in
    // Units::gather_for.
    const bool runs_back = !backward_.empty() && (!splits_backward || last_use(backward_) != backward_.rend());
    if ((releases_weights_after_forward || !runs_back) && !lends_weights) free_last(forward_);
    if (releases_weights_after_backward && runs_back) free_last(backward_);
  }
  if (gradients_ != Scope::unit) return;
  for (Recorded& r : backward_) {
    if (uses_unit(r.op, gradient_slot_)) r.op.allocates.push_back({Scope::unit, Access::write, gradient_slot_, -1});
  }
}

}  // namespace orrery
