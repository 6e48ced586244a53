#include "models/planner/shared_gradients.h"

#include <algorithm>

#include "models/layout/replicas.h"
#include "models/planner/gradient_ops.h"
#include "models/planner/host_copies.h"

namespace orrery {

bool shares_table(const Draft& draft) {
  const bool end = draft.at.stage == 0 || draft.at.stage == draft.facts.spec.strategy.pipeline - 1;
  const bool shared = draft.facts.spec.model.tied_embeddings || draft.facts.spec.model.mtp_layers > 0;
  return shared && !draft.context.ends_meet && end && !shares_table_unlike(draft) &&
         !is_frozen(draft.facts.spec.model, kEmbeddingTable);
}

bool sums_over_model(const Draft& draft) {
  return shares_table(draft) || std::any_of(draft.layout.chunks.begin(), draft.layout.chunks.end(), [](const Chunk& c) {
           const auto& parts = c.weights.partial;
           return c.weights.kv > 0 || std::any_of(parts.begin(), parts.end(), [](auto& p) { return p.second > 0; });
         });
}

void SharedGradients::reduce() {
  // With the optimizer on the host, HostUnits has already summed these gradients, unit by unit.
  if (facts_.host_update() && facts_.unit_gradients) return;
  const std::vector<TaskId> after = {writer_.last_of(LaneKind::compute), writer_.last_of(LaneKind::data_reduce),
                                     writer_.last_of(LaneKind::expert_reduce), writer_.last_of(LaneKind::replicate)};
  const auto bytes = [&](std::int64_t elements) {
    return (facts_.unit_gradients ? draft_.shard(elements, Dimension::data) : elements) * facts_.gradient_width;
  };
  const auto sum = [&](const Chunk& chunk, const char* name, Dimension group, LaneKind lane, Part part,
                       std::int64_t elements) {
    if (elements == 0) return;
    Operand gradients = optimizer_gradients(draft_, Access::read_write);
    gradients.part = part;
    const Op op = {.name = name,
                   .work = Collective{CollectiveKind::all_reduce, group, bytes(elements), facts_.gradient_width},
                   .phase = Phase::step,
                   .lane = lane,
                   .operands = {gradients}};
    writer_.emit(op, chunk.state, after);
  };
  for (const Chunk& chunk : chunks_) {
    for (const auto& [group, elements] : chunk.weights.partial)
      sum(chunk, "reduce norm gradients", group, LaneKind::tensor, Part::partial, elements);
    sum(chunk, "reduce key/value gradients", Dimension::kv, LaneKind::tensor, Part::kv, chunk.weights.kv);
  }
  if (shares_table(draft_))
    sum(draft_.at.stage == 0 ? chunks_.front() : chunks_.back(), "reduce tied embedding", Dimension::embedding,
        LaneKind::embedding, Part::tied, context_.table_rows * context_.hidden);
  if (facts_.host_update()) offload_buckets();
}

// Offloads the gradient buckets to the host; this had to wait for the sums over the ranks of a replica of the model.
void SharedGradients::offload_buckets() {
  if (!sums_over_model(draft_)) return;
  std::vector<TaskId> after;
  for (const LaneKind lane :
       {LaneKind::compute, LaneKind::data_reduce, LaneKind::expert_reduce, LaneKind::tensor, LaneKind::embedding})
    after.push_back(writer_.last_of(lane));
  for (Chunk* chunk : draft_.in_model_order()) {
    for (const Bucket& bucket : chunk->buckets) offload_bucket(draft_, writer_, *chunk, bucket, after);
  }
}

}  // namespace orrery
