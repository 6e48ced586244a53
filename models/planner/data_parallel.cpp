// PlanBuilder: what the sharding row gathers and reduces, and when.
#include <algorithm>

#include <fmt/format.h>

#include "models/planner/gradient_ops.h"
#include "models/planner/host_copies.h"
#include "models/planner/plan_builder.h"

namespace orrery {

// Reduces the buckets to whose weights this backward op was the last to add a gradient.
void PlanBuilder::reduce_full_buckets(Chunk& chunk, std::size_t e, const Op& op, TaskId task) {
  for (const Operand& operand : op.operands) {
    const BucketPlace place = bucket_of(draft_, chunk, e, operand);
    if (place.bucket != nullptr && --place.bucket->missing == 0 && reduces_early() &&
        place.bucket->group != Dimension::embedding)
      reduce_bucket(*place.chunk, *place.bucket, task);
  }
}

// One buffer serves all buckets: what fills it, reduces it and empties it runs on one lane, in order.
void PlanBuilder::fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after) {
  const Op op = {.name = "fuse gradients",
                 .work = Multiply{bucket.elements, facts_.gradient_width, 1, false, bucket.first},
                 .phase = Phase::step,
                 .lane = LaneKind::data_reduce,
                 .operands = {state(kGradients, Access::read), number(kFusedBuffer, Access::write)}};
  writer_.emit(op, chunk.state, {after});
}

TaskId PlanBuilder::unfuse_bucket(const Chunk& chunk, const Bucket& bucket) {
  const PlaceCopy work = {.bytes = draft_.shard(bucket.elements, bucket.group) * facts_.gradient_width,
                          .from = Home::device,
                          .to = Home::device,
                          .first = bucket.first,
                          .elements = bucket.elements,
                          .width = facts_.gradient_width};
  const Op op = {.name = "unfuse gradients",
                 .work = work,
                 .phase = Phase::step,
                 .lane = LaneKind::data_reduce,
                 .operands = {number(kFusedBuffer, Access::read), state(kGradients, Access::write)}};
  return writer_.emit(op, chunk.state);
}

void PlanBuilder::reduce_bucket(Chunk& chunk, const Bucket& bucket, TaskId after) {
  average(draft_, writer_, chunk.state, state(kGradients, Access::read_write), bucket.first, bucket.elements);
  if (facts_.averaging != Averaging::none) after = writer_.last_of(LaneKind::compute);
  if (row_.servers || (row_.master && draft_.group_size(bucket.group) > 1)) return give_gradients(chunk, bucket, after);
  const bool leaves = facts_.host_update() && !sums_over_model();  // else they leave behind those sums
  if (draft_.group_size(bucket.group) == 1) {
    if (leaves) offload_bucket(draft_, writer_, chunk, bucket, {after});
    return;
  }
  const bool scatters = scatters_gradients(row_, spec_.software.shards_all_reduce);
  const bool fused = spec_.strategy.fused_buffers;
  if (fused) fuse_bucket(chunk, bucket, after);
  const auto kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const bool beside = bucket.group == Dimension::expert_data && !fused && spec_.strategy.overlap.gradient_reduce;
  const Op op = {
      .name = "reduce gradients",
      .work = Collective{.kind = kind,
                         .group = bucket.group,
                         .bytes = bucket.elements * facts_.gradient_width,
                         .width = facts_.gradient_width,
                         .first = bucket.first,
                         .tensors = scatters ? tensors_in(bucket) : 1},
      .phase = Phase::step,
      .lane = beside ? LaneKind::expert_reduce : LaneKind::data_reduce,
      .operands = {fused ? number(kFusedBuffer, Access::read_write)
                         : state(facts_.averaging == Averaging::copy ? kBuckets : kGradients, Access::read_write)}};
  TaskId reduced = writer_.emit(op, chunk.state, {after});
  if (fused) reduced = unfuse_bucket(chunk, bucket);
  if (leaves) offload_bucket(draft_, writer_, chunk, bucket, {reduced});
}

}  // namespace orrery
