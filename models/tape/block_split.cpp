// This file has BlockBuilder's functions that split backward into input gradients and the ops that only weight
// gradients need (zero-bubble schedules).
#include <algorithm>

#include "models/tape/block_builder.h"

namespace orrery {
namespace {

bool writes_to(const Operand& o) { return o.access != Access::read; }

}  // namespace

// Returns whether an op may be moved to the second part of backward. It may if only weight gradients need it (each of
// its results is a weight gradient, or is read only by moved ops, or by no op) and if no op of the first part
// overwrites its inputs. An op that writes the block's input gradient stays in the first part, because the preceding
// block waits for that gradient; so does an op that reads gathered weights, which are freed after the first part.
bool BlockBuilder::may_wait(std::size_t index, const LaterUses& later) const {
  const Op& op = backward_[index].op;
  if (op.recompute || std::none_of(op.operands.begin(), op.operands.end(), writes_to)) return false;
  for (const Operand& o : op.operands) {
    if (o.scope == gradients_ && o.slot == gradient_slot_) continue;
    if (o.scope == Scope::previous || (weights_ == Scope::unit && o.scope == Scope::unit && o.slot == weight_slot_))
      return false;
    const auto found = later.find({o.scope, o.slot});
    const LaterUse use = found == later.end() ? LaterUse{} : found->second;
    if (writes_to(o) ? use.now : use.written_now) return false;
    const bool unread = op.weight_gradient && o.scope == Scope::own && found == later.end();
    if (writes_to(o) && !use.late && !unread) return false;
  }
  return true;
}

void BlockBuilder::put_weight_gradients_last() {
  std::vector<bool> waits(backward_.size(), false);
  LaterUses later;
  for (std::size_t i = backward_.size(); i-- > 0;) {
    waits[i] = may_wait(i, later);
    for (const Operand& o : backward_[i].op.operands) {
      LaterUse& use = later[{o.scope, o.slot}];
      (waits[i] ? use.late : use.now) = true;
      use.written_now = use.written_now || (!waits[i] && writes_to(o));
    }
  }
  std::vector<Recorded> parts[2];
  if (gradients_ == Scope::unit) keep_early_gradients(waits);
  for (std::size_t i = 0; i < backward_.size(); ++i) {
    backward_[i].op.phase = waits[i] ? Phase::weight_gradient : Phase::input_gradient;
    parts[waits[i] ? 1 : 0].push_back(std::move(backward_[i]));
  }
  backward_ = std::move(parts[0]);
  block_.input_gradients = static_cast<std::uint32_t>(backward_.size());
  for (Recorded& r : parts[1]) backward_.push_back(std::move(r));
}

// Keeps weight gradients that the first part of backward computes (a norm computes them together with its input's
// gradient) in buffers of the block until the second part adds them to the unit's gradient. The unit's gradient buffer
// serves one micro-batch at a time, and passes of other micro-batches run between the two parts.
void BlockBuilder::keep_early_gradients(std::vector<bool>& waits) {
  const std::size_t count = backward_.size();
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < backward_[i].op.operands.size(); ++k) {
      const Operand o = backward_[i].op.operands[k];
      if (waits[i] || o.scope != gradients_ || o.slot != gradient_slot_ || o.parameter < 0) continue;
      const LocalParameter& p = block_.parameters[o.parameter];
      const Bytes width = storage_bytes(precision_);
      const Id early = slot("early gradient", p.out * p.in * width, Category::gradients);
      early_[early] = o.parameter;
      Op add = {.name = "early gradient accumulate",
                .work = Accumulate{p.out * p.in, width, width},
                .precision = precision_,
                .weight_gradient = true,
                .operands = {{Scope::own, Access::read, early, -1}, o}};
      backward_[i].op.operands[k] = {Scope::own, Access::write, early, o.parameter};
      backward_.push_back({std::move(add)});
      waits.push_back(true);
    }
  }
}

}  // namespace orrery
