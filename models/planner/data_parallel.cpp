#include "models/planner/data_parallel.h"

#include <algorithm>

#include "models/layout/buckets.h"
#include "models/planner/gradient_ops.h"
#include "models/planner/host_copies.h"
#include "models/planner/shared_gradients.h"

namespace orrery {

// Returns the number of tensors in the collective call for a bucket: one, unless the framework passes the bucket's
// parameters separately to one coalesced call.
static std::int64_t tensors_in(const PlanFacts& facts, const Bucket& bucket) {
  return facts.spec.software.communication.sharded_in_one_bucket && facts.row.shards_optimizer ? bucket.tensors : 1;
}

// Reduces each bucket whose gradients are complete after the backward op that was just issued.
void BucketReduction::after_backward_op(const Pass& pass, std::size_t e, std::uint32_t op, TaskId task) {
  Chunk& chunk = chunks_[pass.action.chunk];
  // A loop by index, not by iterator, because reductions append ops to plan_.ops.
  for (std::size_t i = 0; i < plan_.ops[op].operands.size(); ++i) {
    const BucketPlace place = bucket_of(draft_, chunk, e, plan_.ops[op].operands[i]);
    if (place.bucket == nullptr || --place.bucket->missing > 0) continue;
    if (facts_.reduces_each_time)
      reduce_again(*place.chunk, *place.bucket, task);
    else if (reduces_early() && place.bucket->group != Dimension::embedding)
      reduce_bucket(*place.chunk, *place.bucket, task);
  }
}

// Reduces a bucket after each micro-batch, in frameworks that do so; the next micro-batch adds its gradients to the
// reduced sums.
void BucketReduction::reduce_again(const Chunk& chunk, Bucket& bucket, TaskId after) {
  bucket.missing = bucket.awaited;
  reduce_bucket(chunk, bucket, after);
  if (draft_.group_size(bucket.group) == 1) return;
  if (facts_.averaging == Averaging::copy) copy_back(chunk, bucket);
  const TaskId reduced = writer_.last_of(LaneKind::data_reduce);
  for (const std::uint32_t u : bucket.units) writer_.note_write(u, kGradients, reduced);
  if (!spec_.strategy.overlap.gradient_reduce) writer_.hold({reduced});
}

// Copies a bucket's gradients into the fused buffer before they are reduced. One buffer serves all buckets: the ops
// that fill, reduce and empty it run on one lane, in order.
void BucketReduction::fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after) {
  const Op op = {.name = "fuse gradients",
                 .work = Multiply{bucket.elements, facts_.gradient_width, 1, false, bucket.first},
                 .phase = Phase::step,
                 .lane = LaneKind::data_reduce,
                 .operands = {state(kGradients, Access::read), number(kFusedBuffer, Access::write)}};
  writer_.emit(op, chunk.state, {after});
}

TaskId BucketReduction::unfuse_bucket(const Chunk& chunk, const Bucket& bucket) {
  const PlaceCopy work = {.bytes = draft_.shard(bucket.elements, bucket.group) * facts_.gradient_width,
                          .from = MemoryTier::device,
                          .to = MemoryTier::device,
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

void BucketReduction::reduce_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after) {
  average(draft_, writer_, chunk.state, state(kGradients, Access::read_write), bucket.first, bucket.elements);
  if (facts_.averaging != Averaging::none) after = writer_.last_of(LaneKind::compute);
  if (row_.servers || (row_.master && draft_.group_size(bucket.group) > 1)) return servers_->give(chunk, bucket, after);
  // Whether the bucket's gradients are offloaded to the host now. If not, SharedGradients offloads them after the sums
  // over the ranks of a replica of the model.
  const bool leaves = facts_.host_update() && !sums_over_model(draft_);
  if (draft_.group_size(bucket.group) == 1) {
    if (leaves) offload_bucket(draft_, writer_, chunk, bucket, {after});
    return;
  }
  // If gradients are reduced after every micro-batch, later micro-batches add to the reduced sums. The sums must then
  // stay complete on every rank, so gradients are not reduce-scattered.
  const bool scatters =
      scatters_gradients(row_, spec_.software.communication.shards_all_reduce) && !facts_.reduces_each_time;
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
                         .tensors = scatters ? tensors_in(facts_, bucket) : 1},
      .phase = Phase::step,
      .lane = beside ? LaneKind::expert_reduce : LaneKind::data_reduce,
      .operands = {fused ? number(kFusedBuffer, Access::read_write)
                         : state(facts_.averaging == Averaging::copy ? kBuckets : kGradients, Access::read_write)}};
  TaskId reduced = writer_.emit(op, chunk.state, {after});
  if (fused) reduced = unfuse_bucket(chunk, bucket);
  if (leaves) offload_bucket(draft_, writer_, chunk, bucket, {reduced});
}

// Copies reduced gradients from DistributedDataParallel's buckets, which are separate buffers, back to the gradients'
// own buffers.
void BucketReduction::copy_back() {
  if (facts_.averaging != Averaging::copy) return;
  for (const Chunk& chunk : chunks_) {
    if (chunk.buckets.empty()) continue;
    const Op op = {.name = "copy gradients back",
                   .work = Cast{chunk.weights.all, facts_.gradient_width, facts_.gradient_width},
                   .phase = Phase::step,
                   .operands = {state(kBuckets, Access::read), state(kGradients, Access::write)}};
    writer_.emit(op, chunk.state, {writer_.last_of(LaneKind::data_reduce), writer_.last_of(LaneKind::expert_reduce)});
  }
}

void BucketReduction::copy_back(const Chunk& chunk, const Bucket& bucket) {
  const Op op = {.name = "copy bucket back",
                 .work = Multiply{bucket.elements, facts_.gradient_width, 1, false, bucket.first},
                 .phase = Phase::step,
                 .lane = LaneKind::data_reduce,
                 .operands = {state(kBuckets, Access::read), state(kGradients, Access::write)}};
  writer_.emit(op, chunk.state);
}

void BucketReduction::reduce() {
  if (facts_.reduces_each_time) return;
  const auto reduce = [&](bool over_both_ends) {
    for (Chunk* chunk : draft_.in_model_order()) {
      for (const Bucket& bucket : chunk->buckets) {
        if ((bucket.group == Dimension::embedding) == over_both_ends)
          reduce_bucket(*chunk, bucket, writer_.last_of(LaneKind::compute));
      }
    }
  };
  if (!reduces_early()) reduce(false);
  reduce(true);
  copy_back();
}

void BucketReduction::end_step() { count_gradients(draft_); }

void ParameterGather::gather_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after) {
  // If weights are gathered in 8 bits, the size of the gather is computed as if every weight had 8 bits, although the
  // few weights of norms and biases have more.
  const bool eight_bit = spec_.software.communication.gathers_eight_bit && is_eight_bit(spec_.strategy.precision);
  const Bytes width = eight_bit ? 1 : context_.width;
  const Op op = {.name = "gather parameters",
                 .work = Collective{.kind = CollectiveKind::all_gather,
                                    .group = bucket.group,
                                    .bytes = bucket.elements * width,
                                    .width = width,
                                    .first = bucket.first,
                                    .tensors = tensors_in(facts_, bucket)},
                 .phase = Phase::step,
                 .lane = LaneKind::data_gather,
                 .operands = {state(kParameters, Access::write)}};
  const TaskId task = writer_.emit(op, chunk.state, after);
  for (const std::uint32_t u : bucket.units) writer_.note_write(u, kParameters, task);
}

void ParameterGather::gather_updated(const Chunk& chunk, const Bucket& bucket, TaskId update) {
  if (draft_.group_size(bucket.group) > 1) gather_bucket(chunk, bucket, {update});
}

// Issues the first gathers of a step: after the update every rank gathers the parameters that other ranks updated, in
// the order in which forward needs them. If all kernels share one queue, each bucket is gathered only when forward
// waits for the bucket before it (Megatron-Core param_and_grad_buffer.py, finish_param_sync), because earlier gathers
// would delay forward's kernels in the queue.
void ParameterGather::gather_first() {
  to_gather_.clear();
  for (const Chunk* chunk : draft_.in_model_order()) {
    for (auto bucket = chunk->buckets.rbegin(); bucket != chunk->buckets.rend(); ++bucket) {
      if (draft_.group_size(bucket->group) > 1) to_gather_.emplace_back(chunk, &*bucket);
    }
  }
  std::size_t first = to_gather_.size();
  if (plan_.one_queue && spec_.strategy.overlap.parameter_gather) {
    // An embedding table that the first and the last stage gather together is gathered first, so that it does not wait
    // for a stage's forward.
    const auto of_both_ends = [](const auto& of) { return of.second->group == Dimension::embedding; };
    const auto others = std::stable_partition(to_gather_.begin(), to_gather_.end(), of_both_ends);
    first = std::min(first, static_cast<std::size_t>(others - to_gather_.begin()) + 1);
  }
  for (gathering_ = 0; gathering_ < first; ++gathering_) {
    const auto& [chunk, bucket] = to_gather_[gathering_];
    gather_bucket(*chunk, *bucket, {writer_.last_of(LaneKind::compute), writer_.last_of(LaneKind::h2d)});
  }
}

// Gathers all buckets that contain weights of a unit (weights that forward uses together), and the next bucket.
void ParameterGather::gather_ahead(std::uint32_t unit) {
  if (gathering_ == to_gather_.size()) return;
  const auto holds = [&](const auto& of) {
    return std::find(of.second->units.begin(), of.second->units.end(), unit) != of.second->units.end();
  };
  const auto last = std::find_if(to_gather_.rbegin(), to_gather_.rend(), holds);
  const auto end = std::min<std::size_t>(to_gather_.size(), static_cast<std::size_t>(to_gather_.rend() - last) + 1);
  for (; gathering_ < (last == to_gather_.rend() ? 0 : end); ++gathering_)
    gather_bucket(*to_gather_[gathering_].first, *to_gather_[gathering_].second, {});
}

void ParameterGather::begin_slot() {
  to_gather_.clear();
  gathering_ = 0;
}

void ParameterGather::begin_step() {
  if (spec_.strategy.overlap.parameter_gather) gather_first();
}

void ParameterGather::before_block(const Pass& pass) {
  if (pass.forward()) gather_ahead(chunks_[pass.action.chunk].entries[pass.entry()].unit);
}

void ParameterGather::end_step() {
  const Overlap& overlap = spec_.strategy.overlap;
  if (!overlap.parameter_gather && !overlap.gather_in_update) gather_first();
}

}  // namespace orrery
