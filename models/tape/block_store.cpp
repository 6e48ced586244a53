// This file has BlockBuilder's functions that store activations between forward and backward (cut over the tensor
// group, or offloaded).
#include <algorithm>
#include <variant>

#include "models/tape/block_builder.h"

namespace orrery {
namespace {

bool uses(const Op& op, BlockBuilder::Id slot) {
  return std::any_of(op.operands.begin(), op.operands.end(),
                     [&](const Operand& o) { return o.scope == Scope::own && o.slot == slot; });
}

Operand operand(BlockBuilder::Id slot, Access access) { return {Scope::own, access, slot, -1}; }

}  // namespace

// Returns whether backward reads the values that forward wrote to the buffer.
bool BlockBuilder::is_stored(Id slot) const {
  const auto user = [&](const Recorded& r) { return uses(r.op, slot); };
  const auto back = std::find_if(backward_.begin(), backward_.end(), user);
  if (back == backward_.end() || std::none_of(forward_.begin(), forward_.end(), user)) return false;
  return std::none_of(back->op.operands.begin(), back->op.operands.end(),
                      [&](const Operand& o) { return o == operand(slot, Access::write); });
}

// Inserts an op after the last forward op that uses a given buffer.
void BlockBuilder::insert_after_use(Id slot, Op op) {
  const auto last =
      std::find_if(forward_.rbegin(), forward_.rend(), [&](const Recorded& r) { return uses(r.op, slot); });
  forward_.insert(last.base(), {std::move(op), 0});
}

void BlockBuilder::insert_before_backward(std::size_t at, Op op) {
  op.phase = splits_backward ? Phase::input_gradient : Phase::backward;
  backward_.insert(backward_.begin() + static_cast<std::ptrdiff_t>(at), {std::move(op), 0});
  ++block_.input_gradients;
}

// Makes each tensor rank keep only its part of the block's input, which is the same on all tensor ranks, between
// forward and backward; backward all-gathers the parts.
BlockBuilder::Id BlockBuilder::cut_input() {
  const Bytes bytes = block_.buffers[kInput].bytes, width = storage_bytes(precision_);
  const Id part = slot("part of the input", bytes / input_parts);
  insert_after_use(kInput, {.name = "cut input",
                            .work = PlaceCopy{bytes / input_parts, MemoryTier::device, MemoryTier::device},
                            .operands = {operand(kInput, Access::read), operand(part, Access::write)}});
  insert_before_backward(
      0,
      {.name = "gather input",
       .work =
           Collective{.kind = CollectiveKind::all_gather, .group = Dimension::tensor, .bytes = bytes, .width = width},
       .lane = LaneKind::tensor,
       .operands = {operand(part, Access::read), operand(kInput, Access::write)}});
  return part;
}

void BlockBuilder::copy_back(const char* name, LaneKind lane, MemoryTier from, Id source, MemoryTier to, Id target) {
  insert_before_backward(block_.fetches++,
                         {.name = name,
                          .work = PlaceCopy{block_.buffers[target].bytes, from, to},
                          .lane = lane,
                          .operands = {operand(source, Access::read), operand(target, Access::write)}});
}

void BlockBuilder::offload_slot(Id s, Op& release) {
  const Bytes bytes = block_.buffers[s].bytes;
  const Id host = slot(block_.buffers[s].name + " on the host", bytes);
  block_.buffers[host].home = MemoryTier::host;
  insert_after_use(s, {.name = "activations down",
                       .work = PlaceCopy{bytes, MemoryTier::device, MemoryTier::host},
                       .lane = LaneKind::d2h,
                       .operands = {operand(s, Access::read), operand(host, Access::write)}});
  if (behind_host(offload_tier)) {
    const Id disk = slot(block_.buffers[s].name + " on disk", bytes);
    block_.buffers[disk].home = offload_tier;
    insert_after_use(host, {.name = "activations to disk",
                            .work = PlaceCopy{bytes, MemoryTier::host, offload_tier},
                            .lane = LaneKind::nvme_write,
                            .operands = {operand(host, Access::read), operand(disk, Access::write)}});
    copy_back("activations from disk", LaneKind::nvme_read, offload_tier, disk, MemoryTier::host, host);
  }
  copy_back("activations up", LaneKind::h2d, MemoryTier::host, host, MemoryTier::device, s);
  release.operands.push_back(operand(host, Access::read));
}

// Offloads stored activations to the host after their last use in forward, and uploads them ahead of backward. An op of
// the compute lane waits until the offload has ended, then frees the buffers on the device. Buffers whose size is known
// only at run time are not offloaded. If activations are written to a disk, the buffers on the host are freed after the
// write.
void BlockBuilder::offload_stored() {
  Op release = {.name = "activations left", .work = Wait{}};
  std::vector<Id> left;
  const auto slots = static_cast<Id>(block_.buffers.size());
  for (Id s = 0; s < slots; ++s) {
    if (block_.buffers[s].bytes == 0 || block_.buffers[s].runtime_size >= 0 || !is_stored(s)) continue;
    offload_slot(s, release);
    left.push_back(s);
  }
  if (!left.empty()) forward_.push_back({std::move(release), 0, left});
  releases_ = !left.empty();
}

void BlockBuilder::store_activations() {
  Id kept = kInput;
  if (input_parts > 1 && is_stored(kInput)) kept = cut_input();
  block_.buffers[kept].contiguous = contiguous && is_stored(kept);
  if (offloads) offload_stored();
}

// Frees the other model's hidden states behind the last op of a pass that reads them; returns whether there is one.
bool BlockBuilder::free_beside(std::vector<Recorded>& pass) {
  const auto reads = [](const Operand& o) { return o.scope == Scope::beside; };
  const auto last = std::find_if(pass.rbegin(), pass.rend(),
                                 [&](const Recorded& r) { return std::ranges::any_of(r.op.operands, reads); });
  if (last != pass.rend()) last->op.frees.push_back({Scope::beside, Access::write, kInput, -1});
  return last != pass.rend();
}

// Makes each gradient that backward computes for a weight, before an Accumulate op adds it to the sums, lie in a buffer
// of the chunk's states instead of in a buffer of the block.
void BlockBuilder::keep_fresh_gradients() {
  if (!fresh_gradients) return;
  for (const Recorded& adds : std::vector<Recorded>(backward_)) {
    if (!std::holds_alternative<Accumulate>(adds.op.work)) continue;
    const Operand from = adds.op.operands.front(), sum = adds.op.operands.back();
    if (from.scope != Scope::own || sum.scope != gradients_ || sum.slot != gradient_slot_) continue;
    for (Recorded& r : backward_) {
      for (Operand& o : r.op.operands) {
        if (o.scope == Scope::own && o.slot == from.slot) o = {Scope::state, o.access, *fresh_gradients, sum.parameter};
      }
    }
    block_.buffers[from.slot].bytes = 0;
  }
}

// Marks the ops of a graph that follow another op of it in the same pass: one call launches them all.
void BlockBuilder::join_graphs(std::vector<Recorded>& ops) {
  for (std::size_t i = 1; i < ops.size(); ++i) {
    if (ops[i].graph != 0 && ops[i].graph == ops[i - 1].graph && ops[i].op.phase == ops[i - 1].op.phase)
      ops[i].op.same_call = true;
  }
}

// Makes backward write the gradient of the block's input into the preceding block's buffer. If the gradient of the
// input is the same buffer as the gradient of the output, the output's gradient is copied into that buffer.
void BlockBuilder::hand_gradient_on() {
  const auto gradient = gradient_of_.find(kInput);
  if (gradient == gradient_of_.end()) return;
  if (gradient->second == kOutputGradient) {
    const Bytes bytes = block_.buffers[kOutputGradient].bytes, width = storage_bytes(precision_);
    gradient->second = slot("input gradient", bytes);
    emit("gradient copy", Cast{bytes / width, width, width},
         {.reads = {kOutputGradient}, .writes = {gradient->second}});
  }
  replace(Scope::own, gradient->second, Scope::previous, kOutputGradient, backward_);
}

}  // namespace orrery
