#include "models/layout/arena.h"

#include <algorithm>
#include <set>

namespace orrery {

Bytes fused_bytes(const Draft& draft) {
  if (!draft.facts.spec.strategy.fused_buffers) return 0;
  Bytes most = 0;
  for (const Chunk& chunk : draft.layout.chunks) {
    for (const Bucket& b : chunk.buckets) most = std::max(most, b.elements * draft.facts.gradient_width);
  }
  return most;
}

void add_arena(Draft& draft) {
  if (!draft.facts.spec.strategy.contiguous_activations) return;
  draft.plan.blocks.push_back({.name = "arena", .role = BlockRole::arena, .buffers = {{"contiguous activations", 0}}});
  draft.layout.arena = draft.add_frame(static_cast<std::uint32_t>(draft.plan.blocks.size() - 1));
}

void size_arena(Draft& draft) {
  Plan& plan = draft.plan;
  if (draft.layout.arena == kNone) return;
  std::set<std::uint32_t> held;
  Bytes now = 0, most = 0;
  const auto change = [&](TaskId t, const Operand& o, bool takes) {
    const Frame& frame = plan.frames[frame_of(plan, plan.tasks[t].frame, o)];
    const BlockBuffer& slot = plan.blocks[frame.block].buffers[o.slot];
    if (!slot.contiguous) return;
    const std::uint32_t buffer = frame.first_buffer + o.slot;
    if (takes ? held.insert(buffer).second : held.erase(buffer) > 0) now += takes ? slot.bytes : -slot.bytes;
    most = std::max(most, now);
  };
  for (TaskId t = plan.classes.back().begin; t < plan.classes.back().end; ++t) {
    for (const Operand& o : plan.op_of(t).allocates) change(t, o, true);
    for (const Operand& o : plan.op_of(t).frees) change(t, o, false);
  }
  plan.blocks[plan.frames[draft.layout.arena].block].buffers.front().bytes = most;
}

}  // namespace orrery
