// PlanBuilder: gradients that ranks of one replica of the model sum, beside the sums over data ranks. Where the
// optimizer is on the host, gradients leave the device when these sums are done.
#include <algorithm>

#include "models/partition/rank_groups.h"
#include "models/planner/gradient_ops.h"
#include "models/planner/plan_builder.h"
#include "models/planner/shared_gradients.h"

namespace orrery {

bool shares_table(const Draft& draft) {
  const bool end = draft.at.stage == 0 || draft.at.stage == draft.facts.spec.strategy.pipeline - 1;
  const bool shared = draft.facts.spec.model.tied_embeddings || draft.facts.spec.model.mtp_layers > 0;
  return shared && !draft.context.ends_meet && end && !shares_table_unlike(draft);
}

bool PlanBuilder::sums_over_model() const {
  return shares_table(draft_) || std::any_of(chunks_.begin(), chunks_.end(), [](const Chunk& c) {
           const auto& parts = c.weights.partial;
           return c.weights.kv > 0 || std::any_of(parts.begin(), parts.end(), [](auto& p) { return p.second > 0; });
         });
}

// Gradients that several ranks of the model hold a part of: norm weights under sequence parallelism, norms of heads,
// key/value heads that several ranks hold, tied embeddings; once a step, after the data-parallel reduction, as
// Megatron-Core's finalize_model_grads() does. Where gradients were reduced to shards, only the shards are summed.
void PlanBuilder::reduce_what_is_shared() {
  if (facts_.host_update() && facts_.unit_gradients)
    return finish_late_unit();  // the other units were summed one by one
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
  if (facts_.host_update()) lower_buckets();
}

// Sums this rank's shard of a unit over the ranks of the model that each have a part of the gradient, before the shard
// leaves the device: behind the unit's reduction, on the same lane. These ranks hold units alike, so that they own the
// same part of a unit.
void PlanBuilder::sum_unit_over_model(const Chunk& chunk, std::uint32_t unit_frame) {
  std::map<std::pair<Dimension, Part>, std::int64_t> elements;
  for (const Entry& entry : chunk.entries) {
    for (const LocalParameter& p : plan_.blocks[entry.block].parameters) {
      const bool apart = row_.shards_parameters && p.tile > 0;  // a tile is a unit of its own
      const bool here = apart ? entry.unit != unit_frame && plan_.frames[unit_frame].base == entry.base + p.offset
                              : entry.unit == unit_frame;
      if (!entry.owns || !here) continue;
      for (const Dimension group : tensor_axes(spec_.strategy))
        elements[{group, Part::partial}] += p.summed_over(group) ? p.out * p.in : 0;
      elements[{Dimension::kv, Part::kv}] += p.kv_rows * p.in;
    }
  }
  for (const auto& [of, n] : elements) {
    if (n == 0) continue;
    Operand sum =
        facts_.host_gradients() ? unit(kReduced, Access::read_write) : state(kGradientShard, Access::read_write);
    sum.part = of.second;
    const Op op = {.name = of.second == Part::kv ? "reduce key/value gradients" : "reduce norm gradients",
                   .work = Collective{.group = of.first,
                                      .bytes = draft_.shard(n, Dimension::data) * facts_.gradient_width,
                                      .width = facts_.gradient_width},
                   .phase = Phase::backward,
                   .lane = LaneKind::data_reduce,
                   .operands = {sum}};
    writer_.emit(op, unit_frame, {writer_.last_of(LaneKind::replicate)});
  }
}

// Finishes a unit's gradients, when all micro-batches are in them. lane: the lane of the unit's reduction. A word table
// that another stage holds too waits for the end of the step: the stages come to it at other times.
void PlanBuilder::finish_unit(const Chunk& chunk, std::uint32_t unit_frame, LaneKind lane) {
  sum_unit_over_model(chunk, unit_frame);
  const bool table = std::any_of(chunk.entries.begin(), chunk.entries.end(), [&](const Entry& e) {
    const std::vector<LocalParameter>& parameters = plan_.blocks[e.block].parameters;
    return e.unit == unit_frame && !parameters.empty() && parameters.front().name == kWordTable;
  });
  if (table && shares_table(draft_)) {
    late_unit_ = unit_frame;
    return;
  }
  const TaskId read = facts_.host_gradients() && facts_.takes_norm() ? norm_of_unit(unit_frame, lane) : kNone;
  lower_gradients(unit_frame, read);
}

// Sums a word table's gradient over both ends of the pipeline. The table is the unit's first region, cut alike on both
// stages.
void PlanBuilder::finish_late_unit() {
  if (late_unit_ == kNone) return;
  const Bytes bytes = draft_.shard(context_.table_rows * context_.hidden, Dimension::data) * facts_.gradient_width;
  const Op op = {.name = "reduce tied embedding",
                 .work = Collective{.group = Dimension::embedding, .bytes = bytes, .width = facts_.gradient_width},
                 .phase = Phase::step,
                 .lane = LaneKind::embedding,
                 .operands = {facts_.host_gradients() ? unit(kReduced, Access::read_write)
                                                      : state(kGradientShard, Access::read_write)}};
  const TaskId summed =
      writer_.emit(op, late_unit_, {writer_.last_of(LaneKind::data_reduce), writer_.last_of(LaneKind::replicate)});
  const TaskId read =
      facts_.host_gradients() && facts_.takes_norm() ? norm_of_unit(late_unit_, LaneKind::compute) : kNone;
  lower_gradients(late_unit_, read == kNone ? summed : read);
  late_unit_ = kNone;
}

// Offloads the buckets that waited for sums over ranks of the model.
void PlanBuilder::lower_buckets() {
  if (!sums_over_model()) return;
  std::vector<TaskId> after;
  for (const LaneKind lane :
       {LaneKind::compute, LaneKind::data_reduce, LaneKind::expert_reduce, LaneKind::tensor, LaneKind::embedding})
    after.push_back(writer_.last_of(lane));
  for (Chunk* chunk : draft_.in_model_order()) {
    for (const Bucket& bucket : chunk->buckets) lower_bucket(*chunk, bucket, after);
  }
}

}  // namespace orrery
