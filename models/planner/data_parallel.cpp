// PlanBuilder: what the sharding row gathers and reduces, and when.
#include <algorithm>

#include <fmt/format.h>

#include "models/planner/plan_builder.h"

namespace orrery {

// Gathers the units that the action's next blocks read: the one at `position`, and prefetch_units further ones. Units
// on disks are fetched to the host further ahead, by as many units again and one.
void PlanBuilder::gather_for(const Action& action, std::size_t position, const std::vector<std::size_t>& order) {
  const Chunk& chunk = chunks_[action.chunk];
  std::int64_t ahead = spec_.strategy.overlap.parameter_gather ? spec_.strategy.prefetch_units : 0;
  const Phase phase = action.phase == Phase::forward ? Phase::forward : Phase::backward;
  const std::int64_t farthest = spec_.strategy.offload.parameters == Device::nvme ? -1 - ahead : 0;
  for (std::size_t i = position; i < order.size() && ahead >= farthest; ++i) {
    const Entry& entry = chunk.entries[order[i]];
    if (plan_.blocks[entry.block].parameters.empty() || (phase == Phase::backward && !runs_back_with(entry))) continue;
    // A tied output's weights lie in the embedding's state.
    const std::uint32_t state_frame = plan_.frames[chunk.frames[order[i]]].state;
    if (ahead >= 0 && phase == Phase::forward && lends_table(entry))
      gather_unit(plan_.frames[entry.unit].previous, table_chunk().state, phase);
    if (ahead >= 0)
      gather_unit(entry.unit, state_frame, phase);
    else if (!gathered_[entry.unit])
      stage_unit(entry.unit, state_frame, phase);
    --ahead;
  }
  const Entry& own = chunk.entries[order[position]];
  if (plan_.blocks[own.block].parameters.empty()) return;
  if (phase == Phase::forward && lends_table(own)) copy_out(plan_.frames[own.unit].previous, phase);
  copy_out(own.unit, phase);
}

// Whether an entry's backward needs the entry's weights. Where backward runs in two parts, a unit that it does not read
// is not gathered: the unit would be given up in another part than the one that it was gathered for.
bool PlanBuilder::runs_back_with(const Entry& entry) const {
  const std::vector<std::uint32_t>& ops = plan_.blocks[entry.block].backward;
  const auto reads = [](const Operand& o) { return o.scope == Scope::unit && o.slot == kGathered; };
  return !context_.splits_backward || std::any_of(ops.begin(), ops.end(), [&](std::uint32_t op) {
    return std::any_of(plan_.ops[op].operands.begin(), plan_.ops[op].operands.end(), reads);
  });
}

// When units_in_flight units were given up that nobody has waited for, the issuing thread waits for the first of them
// (FSDP's limit_all_gathers: a queue of the events that record when a unit was freed). Units that stay do not count.
void PlanBuilder::gather_unit(std::uint32_t unit_frame, std::uint32_t state_frame, Phase phase) {
  if (gathered_[unit_frame]) return;
  gathered_[unit_frame] = true;
  plan_.frames[unit_frame].unit = unit_frame;
  plan_.frames[unit_frame].state = state_frame;
  std::vector<TaskId> after;
  if (!spec_.strategy.overlap.parameter_gather) after.push_back(writer_.last_of(LaneKind::compute));
  if (static_cast<std::int64_t>(released_.size()) >= spec_.strategy.units_in_flight) {
    after.push_back(released_.front());
    released_.pop_front();
  }
  const std::vector<Region>& regions = regions_.at(unit_frame);
  if (host_parameters()) raise_unit(unit_frame, state_frame, phase, after);
  if (row_.fp32_shards) {
    const Operand raised = unit(kRaisedShard, Access::read);
    Op cast = {.name = "cast shard",
               .work = Cast{shard(regions), spec_.strategy.optimizer.master_bytes, context_.width},
               .phase = phase,
               .lane = LaneKind::data_gather,
               .host_waits = !host_parameters(),
               .operands = {host_parameters() ? raised : state(kParameterShard, Access::read),
                            unit(kCastShard, Access::write)},
               .allocates = {unit(kCastShard, Access::write)}};
    if (host_parameters()) cast.frees = {raised};
    writer_.emit(cast, unit_frame, after);
  }
  if (copied_alone(unit_frame)) return;
  for (const Region& r : regions) writer_.emit(gather_op(r, regions, phase), unit_frame, after);
  if (copies_out(regions)) arrived_.insert(unit_frame);
}

// Whether a gathered unit arrives in a buffer of its own and is copied out. Tiles are gathered as the tensors that they
// are.
bool PlanBuilder::copies_out(const std::vector<Region>& regions) const {
  return spec_.software.unit_copies == "parameters" && row_.shards_parameters && spec_.strategy.offload.tiling == 1 &&
         (regions.size() > 1 || (!regions.empty() && group_size(regions.front().group) > 1));
}

// FSDP2 (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather_copy_out): a gathered unit lies
// rank by rank in its buffer; a block's first op waits until the weights have been copied out of it, in the compute
// stream.
void PlanBuilder::copy_out(std::uint32_t unit_frame, Phase phase) {
  if (arrived_.erase(unit_frame) == 0) return;
  const std::vector<Region>& regions = regions_.at(unit_frame);
  const Op copy = {.name = "copy unit out",
                   .work = Cast{regions.back().first + regions.back().elements, context_.width, context_.width},
                   .phase = phase,
                   .operands = {unit(kArrived, Access::read), unit(kGathered, Access::write)},
                   .allocates = {unit(kGathered, Access::write)},
                   .frees = {unit(kArrived, Access::read)}};
  writer_.emit(copy, unit_frame);
}

// Gathers tiles of weights right before the op that reads them, and as many tiles ahead as units elsewhere. ops: those
// still to be issued, the next one first.
void PlanBuilder::gather_tiles(std::uint32_t frame, std::span<const std::uint32_t> ops, Phase phase) {
  std::int64_t ahead = spec_.strategy.overlap.parameter_gather ? spec_.strategy.prefetch_units : 0;
  for (std::size_t i = 0; i < ops.size() && ahead >= 0; ++i) {
    const std::vector<Operand> operands = plan_.ops[ops[i]].operands;  // a copy: gathers add to plan_.ops
    for (const Operand& o : operands) {
      if (o.tile == 0 || o.slot != kGathered) continue;
      gather_unit(frame_of(plan_, frame, o), plan_.frames[frame].state, phase);
      --ahead;
    }
  }
}

// Reduces the gradients of weight tiles as soon as the op that makes them is issued.
void PlanBuilder::reduce_tiles(const Chunk& chunk, std::uint32_t frame, std::uint32_t op) {
  const std::vector<Operand> operands = plan_.ops[op].operands;
  for (const Operand& o : operands) {
    if (o.tile > 0 && o.slot == kUnitGradient) reduce_unit(chunk, frame_of(plan_, frame, o));
  }
}

// A group of one rank copies its shard, which is the whole region. A region among several is gathered by a collective
// even so, because a collective knows the region's place.
Op PlanBuilder::gather_op(const Region& region, const std::vector<Region>& all, Phase phase) const {
  const bool first = region.first == 0, last = region.first == all.back().first;
  const bool apart = row_.fp32_shards || host_parameters();  // the shard is in a buffer of the unit's
  const Operand to = unit(copies_out(all) ? kArrived : kGathered, Access::write);
  const Collective gather = {.kind = CollectiveKind::all_gather,
                             .group = region.group,
                             .bytes = region.elements * context_.width,
                             .width = context_.width,
                             .first = region.first};
  Op op = {.name = "gather unit",
           .work = gather,
           .phase = phase,
           .lane = LaneKind::data_gather,
           .host_waits = first && !apart,
           .operands = {to}};
  if (first) op.allocates.push_back(to);
  op.operands.push_back(apart ? unit(kCastShard, Access::read) : state(kParameterShard, Access::read));
  if (last && apart) op.frees.push_back(unit(kCastShard, Access::read));
  if (group_size(region.group) > 1 || all.size() > 1) return op;
  op.name = "copy unit";
  op.work = Cast{region.elements, context_.width, context_.width};
  return op;
}

// The bucket to which an op's operand adds a weight's gradient, if any. A tied output, and the token lookups of further
// predictions, add to the embedding's table.
PlanBuilder::Place PlanBuilder::bucket_of(Chunk& chunk, std::size_t e, const Operand& operand) {
  if (operand.scope != Scope::state || operand.slot != kGradients) return {};
  const bool table = operand.part == Part::tied;
  if (operand.parameter < 0 && !table) return {};
  const bool owns = chunk.entries[e].owns && !table;
  Chunk& home = owns ? chunk : chunks_[table_chunk().number];
  if (home.buckets.empty()) return {};
  const std::int32_t at = owns ? home.bucket_of[e][operand.parameter] : home.bucket_of.front().front();
  return {&home, &home.buckets[at]};
}

// Reduces the buckets to whose weights this backward op was the last to add a gradient.
void PlanBuilder::after_backward_op(Chunk& chunk, std::size_t e, const Op& op, TaskId task) {
  for (const Operand& operand : op.operands) {
    const Place place = bucket_of(chunk, e, operand);
    if (place.bucket != nullptr && --place.bucket->missing == 0 && reduces_early() &&
        place.bucket->group != Dimension::embedding)
      reduce_bucket(*place.chunk, *place.bucket, task);
  }
}

// Takes the mean of gradients over data ranks, where the stack does so in a pass of its own.
void PlanBuilder::average(std::uint32_t frame, const Operand& gradients, std::int64_t first, std::int64_t elements) {
  if (averaging_ == Averaging::none) return;
  Op op = {
      .name = "average gradients",
      .work = Multiply{elements, gradient_width_, 1 / static_cast<double>(spec_.strategy.loss_ranks()), false, first},
      .phase = Phase::step,
      .operands = {gradients}};
  if (averaging_ == Averaging::copy) {
    op.operands.front().access = Access::read;
    op.operands.push_back(state(kBuckets, Access::write));
  }
  writer_.emit(op, frame);
}

void PlanBuilder::reduce_bucket(Chunk& chunk, const Bucket& bucket, TaskId after) {
  average(chunk.state, state(kGradients, Access::read_write), bucket.first, bucket.elements);
  if (averaging_ != Averaging::none) after = writer_.last_of(LaneKind::compute);
  if (row_.servers || (row_.master && group_size(bucket.group) > 1)) return give_gradients(chunk, bucket, after);
  const bool leaves = host_update() && !sums_over_model();  // else they leave behind those sums
  if (group_size(bucket.group) == 1) {
    if (leaves) lower_bucket(chunk, bucket, {after});
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
                         .bytes = bucket.elements * gradient_width_,
                         .width = gradient_width_,
                         .first = bucket.first,
                         .tensors = scatters ? tensors_in(bucket) : 1},
      .phase = Phase::step,
      .lane = beside ? LaneKind::expert_reduce : LaneKind::data_reduce,
      .operands = {fused ? number(kFusedBuffer, Access::read_write)
                         : state(averaging_ == Averaging::copy ? kBuckets : kGradients, Access::read_write)}};
  TaskId reduced = writer_.emit(op, chunk.state, {after});
  if (fused) reduced = unfuse_bucket(chunk, bucket);
  if (leaves) lower_bucket(chunk, bucket, {reduced});
}

// Whether an entry reduces its unit's gradient by itself. Lookups and logits that share a table run back one after the
// other, and the table's gradient is reduced behind both; where passes of other micro-batches stand between the two,
// each reduces the gradient that it made.
bool PlanBuilder::reduces_apart(const Entry& entry) const { return entry.owns || context_.ends_interleave; }

std::int64_t PlanBuilder::reductions_of(const Chunk& chunk, std::uint32_t unit_frame) const {
  std::int64_t users = 0;
  for (const Chunk& c : chunks_) {
    users += std::count_if(c.entries.begin(), c.entries.end(),
                           [&](const Entry& e) { return e.unit == unit_frame && reduces_apart(e); });
  }
  return std::max<std::int64_t>(1, users) * chunk.micro_batches;
}

// FSDP1's flat parameter is split into weights: autograd joins their gradients again (split_with_sizes_backward). FSDP2
// copies the gradients side by side for the ranks (_fsdp_collectives.py, foreach_reduce_scatter_copy_in), and widens
// them in the same pass where they are reduced in more bits.
bool PlanBuilder::joins_gradients(const std::vector<Region>& regions) const {
  return spec_.software.unit_copies == "gradients" || (copies_out(regions) && gradient_width_ == context_.width);
}

// Reduces a unit's gradient to the ranks that own its shards; sums over replicas of a shard follow at the last
// micro-batch.
void PlanBuilder::reduce_unit(const Chunk& chunk, std::uint32_t unit_frame) {
  const std::vector<Region>& regions = regions_.at(unit_frame);
  if (regions.empty()) return;
  std::int64_t& reduced = reduced_[unit_frame];
  const bool first_micro_batch = reduced == 0, last_micro_batch = ++reduced == reductions_of(chunk, unit_frame);
  const std::int64_t elements = regions.back().first + regions.back().elements;
  plan_.frames[unit_frame].unit = unit_frame;
  plan_.frames[unit_frame].state = chunk.state;
  UnitSlot source = kUnitGradient;
  const auto copied = [&](const char* name, Bytes width, UnitSlot to) {
    const Op copy = {.name = name,
                     .work = Cast{elements, context_.width, width},
                     .phase = Phase::backward,
                     .operands = {unit(source, Access::read), unit(to, Access::write)},
                     .allocates = {unit(to, Access::write)},
                     .frees = {unit(source, Access::read)}};
    writer_.emit(copy, unit_frame);
    source = to;
  };
  if (joins_gradients(regions)) copied("join gradients", context_.width, kJoinedGradient);
  if (gradient_width_ != context_.width) copied("cast gradients", gradient_width_, kCastGradient);
  average(unit_frame, unit(source, Access::read_write), 0, elements);
  if (host_gradients() && !first_micro_batch) raise_gradients(unit_frame);
  const bool begins = host_gradients() && first_micro_batch;  // the sum's buffer is still empty
  const Access how = begins ? Access::write : Access::read_write;
  const Operand sum = host_gradients() ? unit(kReduced, how) : state(kGradientShard, how);
  LaneKind lane = LaneKind::data_reduce;
  for (const Region& r : regions) {
    Op reduce = {.name = "reduce unit",
                 .work = Collective{.kind = CollectiveKind::reduce_scatter,
                                    .group = r.group,
                                    .bytes = r.elements * gradient_width_,
                                    .width = gradient_width_,
                                    .first = r.first},
                 .phase = Phase::backward,
                 .lane = LaneKind::data_reduce,
                 .operands = {unit(source, Access::read), sum}};
    if (begins) reduce.allocates.push_back(sum);
    if (r.first == regions.back().first) reduce.frees.push_back(unit(source, Access::read));
    if (group_size(r.group) == 1 && regions.size() == 1) {
      reduce.name = begins ? "copy unit gradients" : "add unit";
      reduce.work = Accumulate{r.elements, gradient_width_, gradient_width_};
      if (begins) reduce.work = Cast{r.elements, gradient_width_, gradient_width_};
      reduce.lane = lane = LaneKind::compute;
    }
    writer_.emit(reduce, unit_frame);
  }
  if (row_.hybrid && last_micro_batch)
    reduce_replicas(unit_frame,
                    host_gradients() ? unit(kReduced, Access::read_write) : state(kGradientShard, Access::read_write));
  if (host_update() && last_micro_batch)
    finish_unit(chunk, unit_frame, lane);
  else if (host_gradients())
    lower_gradients(unit_frame, kNone);
  if (!spec_.strategy.overlap.gradient_reduce)
    writer_.hold({writer_.last_of(LaneKind::data_reduce), writer_.last_of(LaneKind::replicate)});
}

// Sums a unit's shards over their replicas. Replicas of experts' shards lie on other ranks than those of other weights.
void PlanBuilder::reduce_replicas(std::uint32_t unit_frame, const Operand& gradients) {
  std::vector<Region> runs;
  std::int64_t first = 0;
  for (const Region& r : regions_.at(unit_frame)) {
    const Dimension group = r.group == Dimension::expert_data ? Dimension::expert_replicate : Dimension::replicate;
    if (runs.empty() || runs.back().group != group) runs.push_back({first, 0, group});
    runs.back().elements += shard(r.elements, r.group);
    first += shard(r.elements, r.group);
  }
  for (const Region& r : runs) {
    if (group_size(r.group) == 1) continue;
    const Op replicas = {
        .name = "reduce replicas",
        .work =
            Collective{
                .group = r.group, .bytes = r.elements * gradient_width_, .width = gradient_width_, .first = r.first},
        .phase = Phase::backward,
        .lane = LaneKind::replicate,
        .operands = {gradients}};
    writer_.emit(replicas, unit_frame, {writer_.last_of(LaneKind::data_reduce)});
  }
}

}  // namespace orrery
