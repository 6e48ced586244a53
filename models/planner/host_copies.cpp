#include "models/planner/host_copies.h"

namespace orrery {

static LaneKind lane_of(MemoryTier from, MemoryTier to) {
  if (behind_host(from)) return LaneKind::nvme_read;
  if (behind_host(to)) return LaneKind::nvme_write;
  return from == MemoryTier::device ? LaneKind::d2h : LaneKind::h2d;
}

Op copy_op(const char* name, Phase phase, const PlaceCopy& work, const Operand& from, const Operand& to) {
  return {.name = name, .work = work, .phase = phase, .lane = lane_of(work.from, work.to), .operands = {from, to}};
}

std::uint16_t arriving_gradients(const PlanFacts& facts) {
  if (facts.delayed()) return kNextGradients;
  return due_gradients(facts);
}

std::uint16_t due_gradients(const PlanFacts& facts) {
  if (facts.host_gradients()) return kGradientShard;
  return kHostGradients;
}

void offload_bucket(const Draft& draft, TaskWriter& writer, const Chunk& chunk, const Bucket& bucket,
                    const std::vector<TaskId>& after) {
  const PlaceCopy work = {.bytes = draft.shard(bucket.elements, bucket.group) * draft.facts.gradient_width,
                          .from = MemoryTier::device,
                          .to = MemoryTier::host,
                          .first = bucket.first,
                          .elements = bucket.elements,
                          .width = draft.facts.gradient_width};
  writer.emit(copy_op("gradients down", Phase::step, work, state(kGradients, Access::read),
                      state(arriving_gradients(draft.facts), Access::write)),
              chunk.state, after);
}

}  // namespace orrery
