#include "models/planner/units.h"

#include <algorithm>
#include <utility>

#include "models/layout/unit_frames.h"
#include "models/planner/gradient_ops.h"

namespace orrery {

Units::Units(Draft& draft, TaskWriter& writer, HostUnits* host) : StepPart(draft, writer), host_(host) {
  writer.watch(*this);
}

void Units::begin_slot() {
  gathered_.clear();
  reduced_.clear();
  released_.clear();
  arrived_.clear();
  read_in_node_.clear();
}

void Units::issued(const Op& op, std::uint32_t frame, TaskId task) {
  for (const Operand& operand : op.frees) {
    if (operand.scope != Scope::unit || (operand.slot != kGathered && operand.slot != kGatheredFrozen)) continue;
    // A unit may have two buffers of gathered weights, one for frozen weights; the first of them that was freed has
    // marked the unit as no longer gathered.
    if (!gathered_[frame_of(plan_, frame, operand)]) continue;
    gathered_[frame_of(plan_, frame, operand)] = false;
    released_.push_back(task);
  }
}

void Units::before_block(const Pass& pass) {
  if (row_.shards_parameters && !pass.weights_alone()) gather_for(pass);
}

void Units::before_op(const Pass& pass, std::span<const std::uint32_t> ops) {
  if (!tiles()) return;
  gather_tiles(chunks_[pass.action.chunk].frame_of(pass.action.micro_batch, pass.entry()), ops,
               pass.forward() ? Phase::forward : Phase::backward);
}

void Units::after_backward_op(const Pass& pass, std::size_t e, std::uint32_t op, TaskId) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  if (tiles()) reduce_tiles(chunk, chunk.frame_of(pass.action.micro_batch, e), op);
}

void Units::after_block(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  const Entry& entry = chunk.entries[pass.entry()];
  const bool ends = !facts_.joins_units() || ends_unit(pass);
  if (pass.ends_backward() && facts_.unit_gradients && reduces_apart(entry) && ends)
    reduce_unit(entry.owns ? chunk : draft_.table_chunk(), entry.unit);
  if (facts_.joins_units() && ends) release(pass);
}

// Returns whether the current block is the last one of the pass with weights in its unit (weights that are gathered
// together).
bool Units::ends_unit(const Pass& pass) const {
  const std::vector<Entry>& entries = chunks_[pass.action.chunk].entries;
  const auto shares = [&](std::size_t e) {
    return entries[e].unit == entries[pass.entry()].unit && !plan_.blocks[entries[e].block].parameters.empty();
  };
  return std::none_of(pass.entries.begin() + static_cast<std::ptrdiff_t>(pass.at) + 1, pass.entries.end(), shares);
}

// Frees the gathered weights of a unit that consists of several blocks, after the last of these blocks; the blocks' own
// ops cannot free them, because they do not know which other blocks use the unit.
void Units::release(const Pass& pass) {
  const std::vector<Entry>& entries = chunks_[pass.action.chunk].entries;
  const std::uint32_t unit_frame = entries[pass.entry()].unit;
  const auto gathered = gathered_.find(unit_frame);
  if (gathered == gathered_.end() || !gathered->second) return;
  const auto needed_in_backward = [&](const Entry& e) { return e.unit == unit_frame && runs_back_with(e); };
  if (pass.forward() && !row_.reshards_after_forward && std::ranges::any_of(entries, needed_in_backward)) return;
  Op free = {.name = "release unit", .work = Wait{}, .phase = pass.action.phase};
  if (!draft_.layout.regions.at(unit_frame).empty()) free.frees.push_back(unit(kGathered, Access::read));
  if (!draft_.layout.frozen.at(unit_frame).empty()) free.frees.push_back(unit(kGatheredFrozen, Access::read));
  writer_.emit(free, unit_frame);
}

// Gathers the weights of the next block of an action, and of prefetch_units units after it. Weights on disks are read
// to the host earlier, another prefetch_units + 1 units ahead.
void Units::gather_for(const Pass& pass) {
  const Chunk& chunk = chunks_[pass.action.chunk];
  std::int64_t ahead = spec_.strategy.overlap.parameter_gather ? spec_.strategy.prefetch_units : 0;
  const Phase phase = pass.forward() ? Phase::forward : Phase::backward;
  const std::int64_t farthest = behind_host(spec_.strategy.offload.parameters) ? -1 - ahead : 0;
  // unit (weights gathered together) of the preceding block, which may also be the unit of this block
  std::uint32_t before = kNone;
  for (std::size_t i = pass.at; i < pass.entries.size() && ahead >= farthest; ++i) {
    const Entry& entry = chunk.entries[pass.entries[i]];
    if (plan_.blocks[entry.block].parameters.empty() || (phase == Phase::backward && !runs_back_with(entry))) continue;
    if (std::exchange(before, entry.unit) == entry.unit) continue;
    // If the output is tied to the embedding, its weights lie in the states of the chunk of layers that has the
    // embedding.
    const std::uint32_t state_frame = plan_.frames[chunk.frames[pass.entries[i]]].state;
    if (ahead >= 0 && phase == Phase::forward && borrows_table(draft_, entry))
      gather_unit(plan_.frames[entry.unit].previous, draft_.table_chunk().state, phase);
    if (ahead >= 0)
      gather_unit(entry.unit, state_frame, phase);
    else if (!gathered_[entry.unit])
      host_->fetch(entry.unit, state_frame, phase);
    --ahead;
  }
  const Entry& own = chunk.entries[pass.entry()];
  if (plan_.blocks[own.block].parameters.empty()) return;
  if (phase == Phase::forward && borrows_table(draft_, own)) copy_out(plan_.frames[own.unit].previous, phase);
  copy_out(own.unit, phase);
}

// Returns whether a block's weights must be gathered for its backward. They need not be if the block has no backward,
// or if backward runs in two parts (input gradients, then weight gradients) and none of its ops reads the gathered
// weights; in that case no op would free them.
bool Units::runs_back_with(const Entry& entry) const {
  const std::vector<std::uint32_t>& ops = plan_.blocks[entry.block].backward;
  const auto reads = [](const Operand& o) {
    return o.scope == Scope::unit && (o.slot == kGathered || o.slot == kGatheredFrozen);
  };
  if (ops.empty()) return false;
  return !context_.splits_backward || std::any_of(ops.begin(), ops.end(), [&](std::uint32_t op) {
    return std::any_of(plan_.ops[op].operands.begin(), plan_.ops[op].operands.end(), reads);
  });
}

// Issues the gather of a unit's weights. To limit the number of units that are gathered at the same time (FSDP's
// limit_all_gathers), the tasks that freed units wait in a queue; if it has units_in_flight tasks, this gather takes
// the oldest out and waits for it. Units that stay gathered add no task to the queue.
void Units::gather_unit(std::uint32_t unit_frame, std::uint32_t state_frame, Phase phase) {
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
  const Regions& regions = draft_.layout.regions.at(unit_frame);
  if (facts_.host_parameters() && !regions.empty()) host_->upload(unit_frame, state_frame, phase, after);
  gather_frozen(unit_frame, phase, after);
  if (row_.fp32_shards && !regions.empty()) {
    const Operand raised = unit(kRaisedShard, Access::read);
    Op cast = {.name = "cast shard",
               .work = Cast{draft_.shard(regions), spec_.strategy.optimizer.master_bytes, context_.width},
               .phase = phase,
               .lane = LaneKind::data_gather,
               .host_waits = !facts_.host_parameters(),
               .operands = {facts_.host_parameters() ? raised : state(kParameterShard, Access::read),
                            unit(kCastShard, Access::write)},
               .allocates = {unit(kCastShard, Access::write)}};
    if (facts_.host_parameters()) cast.frees = {raised};
    writer_.emit(cast, unit_frame, after);
  }
  if (host_ != nullptr && host_->copied_alone(unit_frame)) return;
  const ZeroQuantize& narrow = spec_.strategy.zero_quantize;
  const bool in_node = narrow.secondary_shards && phase != Phase::forward;
  if (in_node) {
    read_in_node_[unit_frame] = gather_in_node(draft_, writer_, unit_frame, phase, after);
    return;
  }
  if (narrow.any()) arrived_.insert(unit_frame);
  if (narrow.weight_bits > 0) return gather_narrow(draft_, writer_, unit_frame, phase, after);
  for (const Region& r : regions) writer_.emit(gather_op(r, regions, phase), unit_frame, after);
  if (copies_out(draft_, regions)) arrived_.insert(unit_frame);
}

// Gathers the frozen weights of a unit, region by region. They are sharded and gathered in the form in which the model
// stores them (NF4 if they are quantized).
void Units::gather_frozen(std::uint32_t unit_frame, Phase phase, const std::vector<TaskId>& after) {
  const Regions& regions = draft_.layout.frozen.at(unit_frame);
  if (facts_.host_frozen() && !regions.empty() && host_->upload_frozen(unit_frame, phase, after)) return;
  const bool begins = draft_.layout.regions.at(unit_frame).empty() || row_.fp32_shards;
  for (const Region& r : regions) {
    Op op = gather_op(r, regions, phase, true);
    op.host_waits = op.host_waits && begins;
    writer_.emit(op, unit_frame, after);
  }
}

// Copies an arrived unit's weights out of the gather's buffer, in which it lies rank by rank, on the compute lane; a
// block's first op waits for this copy. This is what FSDP2 does
// (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, foreach_all_gather_copy_out).
void Units::copy_out(std::uint32_t unit_frame, Phase phase) {
  if (arrived_.erase(unit_frame) == 0) return;
  const TaskId read = read_in_node_.try_emplace(unit_frame, kNone).first->second;
  if (spec_.strategy.zero_quantize.any()) return widen_and_keep(draft_, writer_, unit_frame, phase, read);
  const Regions& regions = draft_.layout.regions.at(unit_frame);
  const Op copy = {.name = "copy unit out",
                   .work = Cast{regions.back().first + regions.back().elements, context_.width, context_.width},
                   .phase = phase,
                   .operands = {unit(kArrived, Access::read), unit(kGathered, Access::write)},
                   .allocates = {unit(kGathered, Access::write)},
                   .frees = {unit(kArrived, Access::read)}};
  writer_.emit(copy, unit_frame);
}

// Gathers tiles (ranges of a weight's rows) right before the op that reads them, and prefetch_units tiles ahead. ops:
// ids of the block's ops still to be issued, the next one first.
void Units::gather_tiles(std::uint32_t frame, std::span<const std::uint32_t> ops, Phase phase) {
  std::int64_t ahead = spec_.strategy.overlap.parameter_gather ? spec_.strategy.prefetch_units : 0;
  for (std::size_t i = 0; i < ops.size() && ahead >= 0; ++i) {
    // `operands` must be a copy: the gathers issued in this loop append ops to plan_.ops, which may move its elements.
    const std::vector<Operand> operands = plan_.ops[ops[i]].operands;
    for (const Operand& o : operands) {
      if (o.tile == 0 || o.slot != kGathered) continue;
      gather_unit(frame_of(plan_, frame, o), plan_.frames[frame].state, phase);
      --ahead;
    }
  }
}

// Reduces the gradients of weight tiles as soon as the op that computes them is issued.
void Units::reduce_tiles(const Chunk& chunk, std::uint32_t frame, std::uint32_t op) {
  const std::vector<Operand> operands = plan_.ops[op].operands;
  for (const Operand& o : operands) {
    if (o.tile > 0 && o.slot == kUnitGradient) reduce_unit(chunk, frame_of(plan_, frame, o));
  }
}

// Returns the op that gathers one region of a unit (adjacent weights whose shards lie in one group of ranks). If the
// group has only one rank, that rank's shard is the complete region, and is copied. If the unit has several regions, a
// collective is used even for one rank, because a collective can write at an offset within the unit.
Op Units::gather_op(const Region& region, const Regions& all, Phase phase, bool frozen) const {
  const bool first = region.first == 0, last = region.first == all.back().first;
  // Whether the shard to gather was uploaded or cast into a buffer of the unit, instead of lying in the flat buffers of
  // the chunk's states.
  const bool apart = frozen ? facts_.host_frozen() : row_.fp32_shards || facts_.host_parameters();
  const UnitSlot whole = frozen ? kGatheredFrozen : copies_out(draft_, all) ? kArrived : kGathered;
  const Operand to = unit(whole, Access::write), shard = state(frozen ? kFrozenShard : kParameterShard, Access::read);
  const Bytes width = frozen ? plan_.frozen_width : context_.width;
  const std::string name = frozen ? "frozen unit" : "unit";
  Op op = {.name = "gather " + name,
           .work = Collective{.kind = CollectiveKind::all_gather,
                              .group = region.group,
                              .bytes = region.elements * width,
                              .width = width,
                              .first = region.first},
           .phase = phase,
           .lane = LaneKind::data_gather,
           .host_waits = first && !apart,
           .operands = {to, apart ? unit(kCastShard, Access::read) : shard}};
  if (first) op.allocates.push_back(to);
  if (last && apart) op.frees.push_back(unit(kCastShard, Access::read));
  if (draft_.group_size(region.group) > 1 || all.size() > 1) return op;
  op.name = "copy " + name;
  op.work = Cast{region.elements, width, width};
  return op;
}

// Returns whether the gradient of a block's unit is reduced right after this block. If token lookups and logits share a
// table and their backward passes follow each other, the table's gradient is reduced once, after both; if passes of
// other micro-batches run between the two, the gradient is reduced after each.
bool Units::reduces_apart(const Entry& entry) const { return entry.owns || context_.ends_interleave; }

std::int64_t Units::reductions_of(const Chunk& chunk, std::uint32_t unit_frame) const {
  if (facts_.joins_units()) return chunk.micro_batches;
  std::int64_t users = 0;
  for (const Chunk& c : chunks_) {
    users += std::count_if(c.entries.begin(), c.entries.end(),
                           [&](const Entry& e) { return e.unit == unit_frame && reduces_apart(e); });
  }
  return std::max<std::int64_t>(1, users) * chunk.micro_batches;
}

// Brings a unit's gradient into the form in which it is reduced, and returns the operand of its buffer. Gradients that
// are kept unsharded, as sums over micro-batches, only need to be averaged, in place.
Operand Units::prepare_gradient(std::uint32_t unit_frame, const Regions& regions) {
  const std::int64_t elements = regions.back().first + regions.back().elements;
  if (!facts_.fresh_gradients) {
    const Operand sums = state(kGradients, Access::read_write);
    average(draft_, writer_, unit_frame, sums, 0, elements);
    return sums;
  }
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
  if (joins_gradients(draft_, regions)) copied("join gradients", context_.width, kJoinedGradient);
  if (facts_.gradient_width != context_.width) copied("cast gradients", facts_.gradient_width, kCastGradient);
  average(draft_, writer_, unit_frame, unit(source, Access::read_write), 0, elements);
  return unit(source, Access::read_write);
}

// Reduces a unit's gradient, region by region, into the sum of this rank's shards. source: the gradient. begins: the
// sum's buffer is still empty, so it is written and not added to. Returns the lane of the reduction.
LaneKind Units::reduce_regions(std::uint32_t unit_frame, const Regions& regions, Operand source, bool begins) {
  source.access = Access::read;
  const Access how = begins ? Access::write : Access::read_write;
  const Operand sum = facts_.host_gradients() ? unit(kReduced, how) : state(kGradientShard, how);
  const bool alone = regions.size() == 1 && draft_.group_size(regions.front().group) == 1;
  const Bytes width = facts_.gradient_width;
  const LaneKind lane = alone ? LaneKind::compute : LaneKind::data_reduce;
  for (const Region& r : regions) {
    Op reduce = {.name = "reduce unit",
                 .work = Collective{.kind = CollectiveKind::reduce_scatter,
                                    .group = r.group,
                                    .bytes = r.elements * width,
                                    .width = width,
                                    .first = r.first},
                 .phase = Phase::backward,
                 .lane = lane,
                 .operands = {source, sum}};
    if (begins) reduce.allocates.push_back(sum);
    if (r.first == regions.back().first && source.scope == Scope::unit) reduce.frees.push_back(source);
    if (alone) {
      reduce.name = begins ? "copy unit gradients" : "add unit";
      reduce.work = Accumulate{r.elements, width, width};
      if (begins) reduce.work = Cast{r.elements, width, width};
    }
    writer_.emit(reduce, unit_frame);
  }
  return lane;
}

// Reduces a unit's gradient to the ranks that own its shards; sums over replicas of a shard follow at the last
// micro-batch.
void Units::reduce_unit(const Chunk& chunk, std::uint32_t unit_frame) {
  const Regions& regions = draft_.layout.regions.at(unit_frame);
  if (regions.empty()) return;
  std::int64_t& reduced = reduced_[unit_frame];
  const bool first_micro_batch = reduced == 0, last_micro_batch = ++reduced == reductions_of(chunk, unit_frame);
  plan_.frames[unit_frame].unit = unit_frame;
  plan_.frames[unit_frame].state = chunk.state;
  if (!facts_.fresh_gradients && !last_micro_batch) return;
  if (spec_.strategy.zero_quantize.gradient_bits > 0) {
    reduce_narrow(draft_, writer_, unit_frame);
    if (!spec_.strategy.overlap.gradient_reduce) writer_.hold({writer_.last_of(LaneKind::data_reduce)});
    return;
  }
  const Operand source = prepare_gradient(unit_frame, regions);
  const bool on_host = facts_.host_gradients();
  if (on_host && !first_micro_batch) host_->upload_gradients(unit_frame);
  const LaneKind lane = reduce_regions(unit_frame, regions, source, on_host && first_micro_batch);
  const Access both = Access::read_write;
  if (row_.hybrid && last_micro_batch) {
    if (on_host || facts_.host_update() || spec_.strategy.overlap.gradient_reduce)
      reduce_replicas(unit_frame, on_host ? unit(kReduced, both) : state(kGradientShard, both));
    else
      replicas_later_.push_back(unit_frame);
  }
  if (facts_.host_update() && last_micro_batch)
    host_->finish(chunk, unit_frame, lane);
  else if (on_host)
    host_->offload_gradients(unit_frame, kNone);
  if (!spec_.strategy.overlap.gradient_reduce)
    writer_.hold({writer_.last_of(LaneKind::data_reduce), writer_.last_of(LaneKind::replicate)});
}

// Sums gradient shards over replicas after all of backward, since the shards stay in memory. If each unit were summed
// when its backward ends, without overlap, the sum would hold up the other stages of a pipeline.
void Units::reduce() {
  for (const std::uint32_t unit_frame : replicas_later_)
    reduce_replicas(unit_frame, state(kGradientShard, Access::read_write));
  replicas_later_.clear();
}

// Sums a unit's gradient shards over the ranks that hold the same shard. Replicas of experts' shards lie on other ranks
// than those of other weights.
void Units::reduce_replicas(std::uint32_t unit_frame, const Operand& gradients) {
  Regions runs;
  std::int64_t first = 0;
  for (const Region& r : draft_.layout.regions.at(unit_frame)) {
    const Dimension group = r.group == Dimension::expert_data ? Dimension::expert_replicate : Dimension::replicate;
    if (runs.empty() || runs.back().group != group) runs.push_back({first, 0, group});
    runs.back().elements += draft_.shard(r.elements, r.group);
    first += draft_.shard(r.elements, r.group);
  }
  for (const Region& r : runs) {
    if (draft_.group_size(r.group) == 1) continue;
    const Op replicas = {.name = "reduce replicas",
                         .work = Collective{.group = r.group,
                                            .bytes = r.elements * facts_.gradient_width,
                                            .width = facts_.gradient_width,
                                            .first = r.first},
                         .phase = Phase::backward,
                         .lane = LaneKind::replicate,
                         .operands = {gradients}};
    writer_.emit(replicas, unit_frame, {writer_.last_of(LaneKind::data_reduce)});
  }
}

}  // namespace orrery
