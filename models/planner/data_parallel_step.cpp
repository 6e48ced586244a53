// PlanBuilder: what happens once a step: sums over ranks of the model, norm, update, and the parameters' way back.
#include <algorithm>

#include "models/planner/gradient_ops.h"
#include "models/planner/plan_builder.h"

namespace orrery {

void PlanBuilder::gather_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after) {
  // Norms' and biases' few elements count as eight-bit ones too.
  const bool eight_bit = spec_.software.gathers_eight_bit && is_eight_bit(spec_.strategy.precision);
  const Bytes width = eight_bit ? 1 : context_.width;
  const Op op = {.name = "gather parameters",
                 .work = Collective{.kind = CollectiveKind::all_gather,
                                    .group = bucket.group,
                                    .bytes = bucket.elements * width,
                                    .width = width,
                                    .first = bucket.first,
                                    .tensors = tensors_in(bucket)},
                 .phase = Phase::step,
                 .lane = LaneKind::data_gather,
                 .operands = {state(kParameters, Access::write)}};
  const TaskId task = writer_.emit(op, chunk.state, after);
  for (const std::uint32_t u : bucket.units) writer_.note_write(u, kParameters, task);
}

// After the update every rank collects the parameters that the others updated, in the order in which forward needs
// them. With one queue for all kernels the next bucket is gathered when the one before it is waited for (Megatron-Core
// param_and_grad_buffer.py, finish_param_sync): more at once would hold up what forward launches.
void PlanBuilder::gather_buckets() {
  to_gather_.clear();
  for (const Chunk* chunk : draft_.in_model_order()) {
    for (auto bucket = chunk->buckets.rbegin(); bucket != chunk->buckets.rend(); ++bucket) {
      if (draft_.group_size(bucket->group) > 1) to_gather_.emplace_back(chunk, &*bucket);
    }
  }
  std::size_t first = to_gather_.size();
  if (facts_.one_queue && spec_.strategy.overlap.parameter_gather) {
    // A table that both ends of the pipeline gather waits for no stage's forward.
    const auto of_both_ends = [](const auto& of) { return of.second->group == Dimension::embedding; };
    const auto others = std::stable_partition(to_gather_.begin(), to_gather_.end(), of_both_ends);
    first = std::min(first, static_cast<std::size_t>(others - to_gather_.begin()) + 1);
  }
  for (gathering_ = 0; gathering_ < first; ++gathering_) {
    const auto& [chunk, bucket] = to_gather_[gathering_];
    gather_bucket(*chunk, *bucket, {writer_.last_of(LaneKind::compute), writer_.last_of(LaneKind::up)});
  }
}

// Gathers all buckets that hold the unit, and one more.
void PlanBuilder::gather_ahead(std::uint32_t unit) {
  if (gathering_ == to_gather_.size()) return;
  const auto holds = [&](const auto& of) {
    return std::find(of.second->units.begin(), of.second->units.end(), unit) != of.second->units.end();
  };
  const auto last = std::find_if(to_gather_.rbegin(), to_gather_.rend(), holds);
  const auto end = std::min<std::size_t>(to_gather_.size(), static_cast<std::size_t>(to_gather_.rend() - last) + 1);
  for (; gathering_ < (last == to_gather_.rend() ? 0 : end); ++gathering_)
    gather_bucket(*to_gather_[gathering_].first, *to_gather_[gathering_].second, {});
}

// Begins a step. With overlap, the gathers of the last update run under this step's first forward, and so does a
// delayed update.
void PlanBuilder::begin_step() {
  if (row_.master) hand_out_weights();
  if (row_.servers && spec_.strategy.overlap.parameter_gather) pull_buckets();
  if (row_.shards_optimizer && !row_.shards_parameters && spec_.strategy.overlap.parameter_gather) gather_buckets();
  if (facts_.delayed()) update_on_host({});
}

// Passes on the number that tells whether an update was right, where updates are validated in the next step.
std::vector<TaskId> PlanBuilder::pass(const std::vector<TaskId>& summed, std::uint16_t number) {
  const bool passes = validation_ != nullptr && number == validation_->partial_norm();
  return passes ? validation_->pass_partial_norm(summed) : summed;
}

// fp16: gradients of a scaled loss are divided by the scale and searched for infinities (Micikevicius et al. 2018); the
// step is skipped where any rank found one.
void PlanBuilder::unscale(const std::vector<TaskId>& after) {
  for (const Chunk& chunk : chunks_) {
    const Op op = {
        .name = "unscale gradients",
        .work = Multiply{chunk.weights.own, facts_.gradient_width, 0, true},
        .phase = Phase::step,
        .optimizer = true,
        .operands = {number(kLossScale, Access::read), optimizer_gradients(draft_, Access::read_write),
                     number(kFoundInfinity, &chunk == &chunks_.front() ? Access::write : Access::read_write)}};
    writer_.emit(op, chunk.state, after);
  }
  pass(sum_over_model(draft_, writer_, "reduce found infinity", kFoundInfinity, true), kFoundInfinity);
}

std::vector<TaskId> PlanBuilder::gradient_norm(const std::vector<TaskId>& after) {
  const std::vector<TaskId> summed = pass(device_norm(draft_, writer_, kSquaredNorm, after), kSquaredNorm);
  if (spec_.software.fused_clip || facts_.validates) return summed;
  for (const Chunk& chunk : chunks_) {
    const Op op = {.name = "clip gradients",
                   .work = Multiply{chunk.weights.own, facts_.gradient_width},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {number(kSquaredNorm, Access::read), optimizer_gradients(draft_, Access::read_write)}};
    writer_.emit(op, chunk.state, summed);
  }
  return summed;
}

void PlanBuilder::update_chunk(const Chunk& chunk, const std::vector<TaskId>& after) {
  const Strategy& s = spec_.strategy;
  const bool sgd = s.optimizer.kind == OptimizerKind::sgd;
  const bool master = plan_.blocks[plan_.frames[chunk.state].block].slots[kMaster].bytes > 0 || row_.fp32_shards;
  const std::uint32_t frame = begin_update(chunk, !master);
  Op update = {.name = "update",
               .work = Update{chunk.weights.own, facts_.gradient_width, master ? s.optimizer.master_bytes : 0,
                              s.optimizer.moment_bytes, row_.fp32_shards ? 0 : context_.width, sgd ? 0 : 2,
                              spec_.software.fused_optimizer},
               .phase = Phase::step,
               .optimizer = true,
               .operands = {optimizer_gradients(draft_, Access::read), state(kMaster, Access::read_write),
                            state(kMoment1, Access::read_write), state(kMoment2, Access::read_write),
                            state(row_.shards_parameters ? kParameterShard : kParameters, Access::write)},
               .allocates = {state(kMoment1, Access::write), state(kMoment2, Access::write)}};
  if (s.clip > 0 && spec_.software.fused_clip && !facts_.validates)
    update.operands.push_back(number(kSquaredNorm, Access::read));
  if (facts_.validates) {
    for (const std::uint16_t of : {validation_->partial_norm(), validation_->whole_norm()})
      update.operands.push_back(number(of, Access::read));
    std::get<Update>(update.work).validated = true;
  }
  if (s.precision == Precision::fp16) {
    update.operands.push_back(number(kFoundInfinity, Access::read));
    update.operands.push_back(number(kLossScale, Access::read_write));
  }
  writer_.emit(update, frame, after);
  if (!facts_.validates) zero_gradients(draft_, writer_, chunk, {});
}

// No pass unscales where the update itself multiplies by the clip coefficient: the norm of infinite gradients is
// infinite.
void PlanBuilder::update() {
  const Strategy& s = spec_.strategy;
  std::vector<TaskId> after = {writer_.last_of(LaneKind::data_reduce), writer_.last_of(LaneKind::expert_reduce),
                               writer_.last_of(LaneKind::replicate), writer_.last_of(LaneKind::tensor),
                               writer_.last_of(LaneKind::embedding)};
  if (facts_.host_update()) {
    for (const LaneKind lane : {LaneKind::compute, LaneKind::down, LaneKind::store})
      after.push_back(writer_.last_of(lane));
    facts_.delayed() ? finish_delayed() : update_on_host(after);
    return;
  }
  if (!draft_.updates()) {
    for (const Chunk& chunk : chunks_) zero_gradients(draft_, writer_, chunk, after);
    return;
  }
  const bool clips = s.clip > 0;
  if (s.precision == Precision::fp16 && !(clips && spec_.software.fused_clip)) unscale(after);
  if (clips) after = gradient_norm(after);
  for (const Chunk& chunk : chunks_) update_chunk(chunk, after);
}

// DistributedDataParallel's buckets are buffers of their own: gradients that were reduced there are copied back.
void PlanBuilder::copy_buckets_back() {
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

void PlanBuilder::reduce() {
  const auto reduce = [&](bool over_both_ends) {
    for (Chunk* chunk : draft_.in_model_order()) {
      for (const Bucket& bucket : chunk->buckets) {
        if ((bucket.group == Dimension::embedding) == over_both_ends)
          reduce_bucket(*chunk, bucket, writer_.last_of(LaneKind::compute));
      }
    }
  };
  if (!facts_.unit_gradients) {
    if (!reduces_early()) reduce(false);
    reduce(true);
  }
  copy_buckets_back();
  reduce_what_is_shared();
}

void PlanBuilder::end_step() {
  if (row_.shards_optimizer && !row_.shards_parameters && !spec_.strategy.overlap.parameter_gather) gather_buckets();
  if (row_.servers && !spec_.strategy.overlap.parameter_gather) pull_buckets();
  if (spec_.software.blocking_steps) {
    const Op read = {.name = "read loss", .work = Wait{true}, .phase = Phase::step, .host_waits = true};
    writer_.emit(read, chunks_.front().state, {writer_.last_of(LaneKind::cpu), writer_.last_of(LaneKind::up)});
  }
  ++updates_;
  count_gradients(draft_);
}

}  // namespace orrery
