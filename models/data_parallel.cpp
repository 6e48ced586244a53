// PlanBuilder: what the sharding row gathers, reduces and updates, and when.
#include <algorithm>

#include <fmt/format.h>

#include "models/plan_builder.h"

namespace orrery {
namespace {

Operand state(std::uint16_t slot, Access access) { return {Scope::state, access, slot, -1}; }
Operand unit(std::uint16_t slot, Access access) { return {Scope::unit, access, slot, -1}; }
Operand number(std::uint16_t slot, Access access) { return {Scope::rank, access, slot, -1}; }

}  // namespace

std::uint32_t PlanBuilder::op_id(const Op& op) {
  Bytes size = 0;
  std::int64_t first = 0;
  Dimension group = Dimension::data;
  if (const auto* c = std::get_if<Collective>(&op.work)) {
    size = c->bytes;
    first = c->first;
    group = c->group;
  }
  if (const auto* c = std::get_if<Cast>(&op.work)) size = c->elements;
  if (const auto* u = std::get_if<Update>(&op.work)) size = u->elements;
  if (const auto* n = std::get_if<SquaredNorm>(&op.work)) size = n->elements;
  if (const auto* c = std::get_if<Multiply>(&op.work)) {
    size = c->elements;
    first = c->first;
  }
  if (const auto* f = std::get_if<Fill>(&op.work)) size = f->bytes;
  if (const auto* a = std::get_if<Accumulate>(&op.work)) size = a->elements;
  std::string key = fmt::format("{} {} {} {} {}", op.name, size, first, op.allocates.size(), op.frees.size());
  key += fmt::format(" {} {} {}", static_cast<int>(op.phase), static_cast<int>(op.lane), static_cast<int>(group));
  for (const Operand& o : op.operands) {
    key += fmt::format(" {}.{}.{}.{}", static_cast<int>(o.scope), o.slot, static_cast<int>(o.access),
                       static_cast<int>(o.part));
  }
  const auto [it, fresh] = step_ops_.try_emplace(key, static_cast<std::uint32_t>(plan_.ops.size()));
  if (fresh) plan_.ops.push_back(op);
  return it->second;
}

// Gathers what the action's next blocks read: the one at `position`, and prefetch_units further ones.
void PlanBuilder::gather_for(const Action& action, std::size_t position, const std::vector<std::size_t>& order) {
  const Chunk& chunk = chunks_[action.chunk];
  std::int64_t ahead = spec_.strategy.overlap.parameter_gather ? spec_.strategy.prefetch_units : 0;
  for (std::size_t i = position; i < order.size() && ahead >= 0; ++i) {
    const Entry& entry = chunk.entries[order[i]];
    if (plan_.blocks[entry.block].parameters.empty()) continue;
    const std::uint32_t state_frame = plan_.frames[chunk.frames[order[i]]].state;  // a tied output's is the embedding's
    gather_unit(entry.unit, state_frame, action.phase == Phase::forward ? Phase::forward : Phase::backward);
    --ahead;
  }
}

// Where units_in_flight units were given up that nobody has waited for, the issuing thread waits for the first of them
// (FSDP's limit_all_gathers: a queue of the events that record when a unit was freed). Units that stay do not count.
void PlanBuilder::gather_unit(std::uint32_t unit_frame, std::uint32_t state_frame, Phase phase) {
  if (gathered_[unit_frame]) return;
  gathered_[unit_frame] = true;
  plan_.frames[unit_frame].unit = unit_frame;
  plan_.frames[unit_frame].state = state_frame;
  std::vector<TaskId> after;
  if (!spec_.strategy.overlap.parameter_gather) after.push_back(last_of(LaneKind::compute));
  if (static_cast<std::int64_t>(released_.size()) >= spec_.strategy.units_in_flight) {
    after.push_back(released_.front());
    released_.pop_front();
  }
  const std::vector<Region>& regions = regions_.at(unit_frame);
  if (row_.fp32_shards) {
    const Op cast = {.name = "cast shard",
                     .work = Cast{shard(regions), spec_.strategy.optimizer.master_bytes, context_.width},
                     .phase = phase,
                     .lane = LaneKind::data_gather,
                     .host_waits = true,
                     .operands = {state(kParameterShard, Access::read), unit(kCastShard, Access::write)},
                     .allocates = {unit(kCastShard, Access::write)}};
    emit(op_id(cast), unit_frame, after);
  }
  for (const Region& r : regions) emit(op_id(gather_op(r, regions, phase)), unit_frame, after);
}

// A group of one copies: its shard is the whole. One region of several is gathered even so, by a collective that knows
// its place.
Op PlanBuilder::gather_op(const Region& region, const std::vector<Region>& all, Phase phase) const {
  const bool first = region.first == 0, last = region.first == all.back().first;
  const Collective gather = {.kind = CollectiveKind::all_gather,
                             .group = region.group,
                             .bytes = region.elements * context_.width,
                             .width = context_.width,
                             .first = region.first};
  Op op = {.name = "gather unit",
           .work = gather,
           .phase = phase,
           .lane = LaneKind::data_gather,
           .host_waits = first && !row_.fp32_shards,
           .operands = {unit(kGathered, Access::write)}};
  if (first) op.allocates.push_back(unit(kGathered, Access::write));
  op.operands.push_back(row_.fp32_shards ? unit(kCastShard, Access::read) : state(kParameterShard, Access::read));
  if (last && row_.fp32_shards) op.frees.push_back(unit(kCastShard, Access::read));
  if (group_size(region.group) > 1 || all.size() > 1) return op;
  op.name = "copy unit";
  op.work = Cast{region.elements, context_.width, context_.width};
  return op;
}

// A backward op may have been the last to add to weights of a bucket.
void PlanBuilder::after_backward_op(Chunk& chunk, std::size_t e, const Action& action, const Op& op, TaskId task) {
  if (action.micro_batch != chunk.last_micro_batch || chunk.buckets.empty() || !chunk.entries[e].owns) return;
  for (const Operand& operand : op.operands) {
    if (operand.scope != Scope::state || operand.slot != kGradients || operand.parameter < 0) continue;
    Bucket& bucket = chunk.buckets[chunk.bucket_of[e][operand.parameter]];
    if (--bucket.missing == 0 && reduces_early()) reduce_bucket(chunk, bucket, task);
  }
}

// The mean over data ranks, where the stack takes it in a pass of its own.
void PlanBuilder::average(std::uint32_t frame, const Operand& gradients, std::int64_t first, std::int64_t elements) {
  if (!averages_gradients(spec_, row_)) return;
  // Copies of the model add up to what one would have.
  const double ranks =
      static_cast<double>(group_size(Dimension::data) / schedule_.copies * group_size(Dimension::replicate));
  Op op = {.name = "average gradients",
           .work = Multiply{elements, gradient_width_, 1 / ranks, false, first},
           .phase = Phase::step,
           .operands = {gradients}};
  if (spec_.software.gradient_average == "copy") {
    op.operands.front().access = Access::read;
    op.operands.push_back(state(kBuckets, Access::write));
  }
  emit(op_id(op), frame);
}

void PlanBuilder::reduce_bucket(Chunk& chunk, const Bucket& bucket, TaskId after) {
  average(chunk.state, state(kGradients, Access::read_write), bucket.first, bucket.elements);
  if (averages_gradients(spec_, row_)) after = last_of(LaneKind::compute);
  if (group_size(bucket.group) == 1) return;
  const bool scatters = row_.shards_optimizer && !spec_.software.shards_all_reduce;
  const auto kind = scatters ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const Op op = {
      .name = "reduce gradients",
      .work = Collective{kind, bucket.group, bucket.elements * gradient_width_, gradient_width_, bucket.first},
      .phase = Phase::step,
      .lane = LaneKind::data_reduce,
      .operands = {state(spec_.software.gradient_average == "copy" ? kBuckets : kGradients, Access::read_write)}};
  emit(op_id(op), chunk.state, {after});
}

// A unit's gradient goes to the ranks that own it; replicas of the shard follow at the last micro-batch.
void PlanBuilder::reduce_unit(const Chunk& chunk, const Entry& entry, bool last_micro_batch) {
  const std::int64_t elements = plan_.blocks[entry.block].parameter_elements;
  if (elements == 0) return;
  plan_.frames[entry.unit].unit = entry.unit;
  plan_.frames[entry.unit].state = chunk.state;
  std::uint16_t source = kUnitGradient;
  if (gradient_width_ != context_.width) {
    const Op cast = {.name = "cast gradients",
                     .work = Cast{elements, context_.width, gradient_width_},
                     .phase = Phase::backward,
                     .operands = {unit(kUnitGradient, Access::read), unit(kCastGradient, Access::write)},
                     .allocates = {unit(kCastGradient, Access::write)},
                     .frees = {unit(kUnitGradient, Access::read)}};
    emit(op_id(cast), entry.unit);
    source = kCastGradient;
  }
  average(entry.unit, unit(source, Access::read_write), 0, elements);
  const std::vector<Region>& regions = regions_.at(entry.unit);
  for (const Region& r : regions) {
    Op reduce = {.name = "reduce unit",
                 .work = Collective{.kind = CollectiveKind::reduce_scatter,
                                    .group = r.group,
                                    .bytes = r.elements * gradient_width_,
                                    .width = gradient_width_,
                                    .first = r.first},
                 .phase = Phase::backward,
                 .lane = LaneKind::data_reduce,
                 .operands = {unit(source, Access::read), state(kGradientShard, Access::read_write)}};
    if (r.first == regions.back().first) reduce.frees.push_back(unit(source, Access::read));
    if (group_size(r.group) == 1 && regions.size() == 1) {
      reduce.name = "add unit";
      reduce.work = Accumulate{r.elements, gradient_width_, gradient_width_};
      reduce.lane = LaneKind::compute;
    }
    emit(op_id(reduce), entry.unit);
  }
  if (row_.hybrid && last_micro_batch) reduce_replicas(entry.unit, shard(regions));
  if (!spec_.strategy.overlap.gradient_reduce)
    barrier_ = {last_of(LaneKind::data_reduce), last_of(LaneKind::replicate)};
}

void PlanBuilder::reduce_replicas(std::uint32_t unit_frame, std::int64_t elements) {
  if (group_size(Dimension::replicate) == 1) return;
  const Op replicas = {
      .name = "reduce replicas",
      .work = Collective{CollectiveKind::all_reduce, Dimension::replicate, elements * gradient_width_, gradient_width_},
      .phase = Phase::backward,
      .lane = LaneKind::replicate,
      .operands = {state(kGradientShard, Access::read_write)}};
  emit(op_id(replicas), unit_frame, {last_of(LaneKind::data_reduce)});
}

// After the update every rank collects the parameters that the others updated, in the order in which forward needs
// them.
void PlanBuilder::gather_buckets() {
  // Norms' and biases' few elements count as eight-bit ones too.
  const bool eight_bit = spec_.software.gathers_eight_bit && is_eight_bit(spec_.strategy.precision);
  const Bytes width = eight_bit ? 1 : context_.width;
  for (const Chunk* chunk : in_model_order()) {
    for (auto bucket = chunk->buckets.rbegin(); bucket != chunk->buckets.rend(); ++bucket) {
      if (group_size(bucket->group) == 1) continue;
      const Op op = {
          .name = "gather parameters",
          .work = Collective{CollectiveKind::all_gather, bucket->group, bucket->elements * width, width, bucket->first},
          .phase = Phase::step,
          .lane = LaneKind::data_gather,
          .operands = {state(kParameters, Access::write)}};
      const TaskId task = emit(op_id(op), chunk->state, {last_of(LaneKind::compute)});
      for (const std::uint32_t u : bucket->units) state_writers_[u][kParameters] = task;
    }
  }
}

// With overlap, the gathers of the last update run under this step's first forward.
void PlanBuilder::begin_step() {
  if (row_.shards_optimizer && !row_.shards_parameters && spec_.strategy.overlap.parameter_gather) gather_buckets();
}

// Gradients that several ranks of the model hold a part of: norm weights under sequence parallelism, norms of heads,
// key/value heads that several ranks hold, tied embeddings; once a step, after the data-parallel reduction, as
// Megatron-Core's finalize_model_grads() does. Where gradients were reduced to shards, only those are summed.
void PlanBuilder::reduce_what_is_shared() {
  const std::vector<TaskId> after = {last_of(LaneKind::compute), last_of(LaneKind::data_reduce),
                                     last_of(LaneKind::replicate)};
  const auto gradients = [&](Part part) {
    return Operand{Scope::state, Access::read_write, unit_gradients_ ? kGradientShard : kGradients, -1, part};
  };
  const auto bytes = [&](std::int64_t elements) {
    return (unit_gradients_ ? shard(elements, Dimension::data) : elements) * gradient_width_;
  };
  const auto sum = [&](const Chunk& chunk, const char* name, Dimension group, Part part, std::int64_t elements) {
    if (elements == 0) return;
    const Op op = {.name = name,
                   .work = Collective{CollectiveKind::all_reduce, group, bytes(elements), gradient_width_},
                   .phase = Phase::step,
                   .lane = LaneKind::tensor,
                   .operands = {gradients(part)}};
    emit(op_id(op), chunk.state, after);
  };
  for (const Chunk& chunk : chunks_) {
    sum(chunk, "reduce norm gradients", Dimension::tensor, Part::partial, chunk.partial_elements);
    sum(chunk, "reduce key/value gradients", Dimension::kv, Part::kv, chunk.kv_elements);
  }
  const bool end = stage_ == 0 || stage_ == spec_.strategy.pipeline - 1;
  const bool shared = spec_.model.tied_embeddings || spec_.model.mtp_layers > 0;
  if (!shared || context_.ends_meet || !end) return;
  const std::int64_t matrix = context_.padded_vocab / context_.tensor * spec_.model.hidden;
  const Op op = {.name = "reduce tied embedding",
                 .work = Collective{CollectiveKind::all_reduce, Dimension::embedding, bytes(matrix), gradient_width_},
                 .phase = Phase::step,
                 .lane = LaneKind::embedding,
                 .operands = {gradients(Part::tied)}};
  emit(op_id(op), chunks_[stage_ == 0 ? 0 : chunks_.size() - 1].state, after);
}

Operand PlanBuilder::optimizer_gradients(Access access) const {
  return state(unit_gradients_ ? kGradientShard : kGradients, access);
}

// One number over all ranks that hold a part of the model.
std::vector<TaskId> PlanBuilder::sum_over_model(const char* name, std::uint16_t of, bool maximum) {
  if (group_size(Dimension::model) == 1) return {last_of(LaneKind::compute)};
  const Op op = {.name = name,
                 .work = Collective{.group = Dimension::model, .bytes = 4, .width = 4, .maximum = maximum},
                 .phase = Phase::step,
                 .lane = LaneKind::model,
                 .operands = {number(of, Access::read_write)}};
  return {emit(op_id(op), chunks_.front().state, {last_of(LaneKind::compute)})};
}

// fp16: gradients of a scaled loss are divided by the scale and searched for infinities (Micikevicius et al. 2018); the
// step is skipped where any rank found one.
void PlanBuilder::unscale(const std::vector<TaskId>& after) {
  for (const Chunk& chunk : chunks_) {
    const Op op = {
        .name = "unscale gradients",
        .work = Multiply{chunk.own, gradient_width_, 0, true},
        .phase = Phase::step,
        .optimizer = true,
        .operands = {number(kLossScale, Access::read), optimizer_gradients(Access::read_write),
                     number(kFoundInfinity, &chunk == &chunks_.front() ? Access::write : Access::read_write)}};
    emit(op_id(op), chunk.state, after);
  }
  sum_over_model("reduce found infinity", kFoundInfinity, true);
}

std::vector<TaskId> PlanBuilder::gradient_norm(const std::vector<TaskId>& after) {
  for (const Chunk& chunk : chunks_) {
    const Op op = {.name = "gradient norm",
                   .work = SquaredNorm{chunk.own, gradient_width_},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {optimizer_gradients(Access::read),
                                number(kSquaredNorm, &chunk == &chunks_.front() ? Access::write : Access::read_write)}};
    emit(op_id(op), chunk.state, after);
  }
  const std::vector<TaskId> summed = sum_over_model("reduce gradient norm", kSquaredNorm, false);
  if (spec_.software.fused_clip) return summed;
  for (const Chunk& chunk : chunks_) {
    const Op op = {.name = "clip gradients",
                   .work = Multiply{chunk.own, gradient_width_},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {number(kSquaredNorm, Access::read), optimizer_gradients(Access::read_write)}};
    emit(op_id(op), chunk.state, summed);
  }
  return summed;
}

void PlanBuilder::update(const Chunk& chunk, const std::vector<TaskId>& after) {
  const Strategy& s = spec_.strategy;
  const bool sgd = s.optimizer.kind == OptimizerKind::sgd;
  const bool master = plan_.blocks[plan_.frames[chunk.state].block].slots[kMaster].bytes > 0 || row_.fp32_shards;
  Op update = {
      .name = "update",
      .work = Update{chunk.own, gradient_width_, master ? s.optimizer.master_bytes : 0, s.optimizer.moment_bytes,
                     row_.fp32_shards ? 0 : context_.width, sgd ? 0 : 2, spec_.software.fused_optimizer},
      .phase = Phase::step,
      .optimizer = true,
      .operands = {optimizer_gradients(Access::read), state(kMaster, Access::read_write),
                   state(kMoment1, Access::read_write), state(kMoment2, Access::read_write),
                   state(row_.shards_parameters ? kParameterShard : kParameters, Access::write)},
      .allocates = {state(kMoment1, Access::write), state(kMoment2, Access::write)}};
  if (s.clip > 0 && spec_.software.fused_clip) update.operands.push_back(number(kSquaredNorm, Access::read));
  if (s.precision == Precision::fp16) {
    update.operands.push_back(number(kFoundInfinity, Access::read));
    update.operands.push_back(number(kLossScale, Access::read_write));
  }
  emit(op_id(update), chunk.state, after);
  const Op zero = {.name = "zero gradients",
                   .work = Fill{unit_gradients_ ? chunk.own * gradient_width_ : chunk.elements * gradient_width_},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {optimizer_gradients(Access::write)}};
  emit(op_id(zero), chunk.state);
}

// With the clip coefficient in the update there is no pass that unscales: the norm of infinite gradients is infinite.
void PlanBuilder::clip_and_update() {
  const Strategy& s = spec_.strategy;
  std::vector<TaskId> after = {last_of(LaneKind::data_reduce), last_of(LaneKind::replicate), last_of(LaneKind::tensor),
                               last_of(LaneKind::embedding)};
  const bool clips = s.clip > 0;
  if (s.precision == Precision::fp16 && !(clips && spec_.software.fused_clip)) unscale(after);
  if (clips) after = gradient_norm(after);
  for (const Chunk& chunk : chunks_) update(chunk, after);
}

// DistributedDataParallel's bucket is a second buffer: what was reduced there goes back.
void PlanBuilder::copy_buckets_back() {
  if (spec_.software.gradient_average != "copy" || !averages_gradients(spec_, row_)) return;
  for (const Chunk& chunk : chunks_) {
    if (chunk.buckets.empty()) continue;
    const Op op = {.name = "copy gradients back",
                   .work = Cast{chunk.elements, gradient_width_, gradient_width_},
                   .phase = Phase::step,
                   .operands = {state(kBuckets, Access::read), state(kGradients, Access::write)}};
    emit(op_id(op), chunk.state, {last_of(LaneKind::data_reduce)});
  }
}

void PlanBuilder::end_step() {
  if (!reduces_early() && !unit_gradients_) {
    for (Chunk* chunk : in_model_order()) {
      for (const Bucket& bucket : chunk->buckets) reduce_bucket(*chunk, bucket, last_of(LaneKind::compute));
    }
  }
  copy_buckets_back();
  reduce_what_is_shared();
  clip_and_update();
  if (row_.shards_optimizer && !row_.shards_parameters && !spec_.strategy.overlap.parameter_gather) gather_buckets();
}

}  // namespace orrery
