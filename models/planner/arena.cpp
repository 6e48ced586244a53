// PlanBuilder: memory that ZeRO-R (Rajbhandari et al. 2020, 1910.02054, sections 6.2 and 6.3) takes once and keeps: a
// buffer of constant size in which gradients are reduced (CB), and one in which the inputs that recomputed layers keep
// lie side by side, so that buffers that come and go between do not cut the allocator's segments into pieces (MD).
#include <algorithm>
#include <set>

#include "models/planner/plan_builder.h"

namespace orrery {

// Size of the fused buffer: as large as the largest bucket.
Bytes PlanBuilder::fused_bytes() const {
  if (!spec_.strategy.fused_buffers) return 0;
  Bytes most = 0;
  for (const Chunk& chunk : chunks_) {
    for (const Bucket& b : chunk.buckets) most = std::max(most, b.elements * gradient_width_);
  }
  return most;
}

// One buffer serves all buckets: what fills it, reduces it and empties it runs on one lane, in order.
void PlanBuilder::fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after) {
  const Op op = {.name = "fuse gradients",
                 .work = Multiply{bucket.elements, gradient_width_, 1, false, bucket.first},
                 .phase = Phase::step,
                 .lane = LaneKind::data_reduce,
                 .operands = {state(kGradients, Access::read), number(kFusedBuffer, Access::write)}};
  writer_.emit(op, chunk.state, {after});
}

TaskId PlanBuilder::unfuse_bucket(const Chunk& chunk, const Bucket& bucket) {
  const PlaceCopy work = {.bytes = shard(bucket.elements, bucket.group) * gradient_width_,
                          .from = Home::device,
                          .to = Home::device,
                          .first = bucket.first,
                          .elements = bucket.elements,
                          .width = gradient_width_};
  const Op op = {.name = "unfuse gradients",
                 .work = work,
                 .phase = Phase::step,
                 .lane = LaneKind::data_reduce,
                 .operands = {number(kFusedBuffer, Access::read), state(kGradients, Access::write)}};
  return writer_.emit(op, chunk.state);
}

void PlanBuilder::add_arena() {
  arena_ = kNone;
  if (!spec_.strategy.contiguous_activations) return;
  plan_.blocks.push_back({.name = "arena", .role = BlockRole::arena, .slots = {{"contiguous activations", 0}}});
  arena_ = add_frame(static_cast<std::uint32_t>(plan_.blocks.size() - 1));
}

// Makes the arena as large as the buffers that lie in it at any time, in the order of issue.
void PlanBuilder::size_arena() {
  if (arena_ == kNone) return;
  std::set<std::uint32_t> held;
  Bytes now = 0, most = 0;
  const auto change = [&](TaskId t, const Operand& o, bool takes) {
    const Frame& frame = plan_.frames[frame_of(plan_, plan_.tasks[t].frame, o)];
    const Slot& slot = plan_.blocks[frame.block].slots[o.slot];
    if (!slot.contiguous) return;
    const std::uint32_t buffer = frame.first_buffer + o.slot;
    if (takes ? held.insert(buffer).second : held.erase(buffer) > 0) now += takes ? slot.bytes : -slot.bytes;
    most = std::max(most, now);
  };
  for (TaskId t = plan_.slots.back().begin; t < plan_.slots.back().end; ++t) {
    for (const Operand& o : plan_.op_of(t).allocates) change(t, o, true);
    for (const Operand& o : plan_.op_of(t).frees) change(t, o, false);
  }
  plan_.blocks[plan_.frames[arena_].block].slots.front().bytes = most;
}

}  // namespace orrery
