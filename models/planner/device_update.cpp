#include "models/planner/device_update.h"

#include <iterator>
#include <variant>

#include "models/planner/gradient_ops.h"
#include "models/planner/matrix_optimizers.h"

namespace orrery {

// If updates are validated in the next step (post-update validation), sends the gradient norm, or in fp16 training
// whether a gradient was infinite, to the next pipeline stage. Returns the tasks that the update must wait for.
std::vector<TaskId> DeviceUpdate::pass(const std::vector<TaskId>& summed, std::uint16_t number) {
  const bool passes = validation_ != nullptr && number == validation_->partial_norm();
  return passes ? validation_->pass_partial_norm(summed) : summed;
}

// Unscales gradients in fp16 training: gradients of a scaled loss are divided by the scale and searched for infinities
// (Micikevicius et al. 2018); the update is skipped if any rank found one.
void DeviceUpdate::unscale(const std::vector<TaskId>& after) {
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

std::vector<TaskId> DeviceUpdate::gradient_norm(const std::vector<TaskId>& after) {
  const std::vector<TaskId> summed = pass(device_norm(draft_, writer_, kSquaredNorm, after), kSquaredNorm);
  if (spec_.software.kernels.fused_clip || facts_.validates) return summed;
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

// Writes Muon's momentum of the layers' matrices and the orthogonalization that follows, which needs complete matrices.
std::vector<TaskId> DeviceUpdate::momentum(const Chunk& chunk, const std::vector<TaskId>& after) {
  const Update work = {.elements = chunk.weights.own_matrices(),
                       .gradient = facts_.gradient_width,
                       .master = 0,
                       .moment = spec_.strategy.optimizer.moment_bytes,
                       .forward = 0,
                       .moments = 1,
                       .fused = spec_.software.kernels.fused_optimizer,
                       .momentum = true};
  Op op = {.name = "momentum",
           .work = work,
           .phase = Phase::step,
           .optimizer = true,
           .operands = {optimizer_gradients(draft_, Access::read_write), state(kMoment1, Access::read_write)},
           .allocates = {state(kMoment1, Access::write)}};
  if (clips_in_update(draft_)) op.operands.push_back(number(kSquaredNorm, Access::read));
  return orthogonalize(draft_, writer_, chunk, {writer_.emit(op, chunk.state, after)});
}

// Updates a chunk bucket by bucket, in the order of the flat buffers, and gathers the parameters of each bucket while
// the next ones are updated.
void DeviceUpdate::update_buckets(const Chunk& chunk, Op update, const std::vector<TaskId>& after) {
  const Operand adapted = number(kLossScale, Access::read_write);
  const bool adapts = !update.operands.empty() && update.operands.back() == adapted;
  auto& work = std::get<Update>(update.work);
  for (auto bucket = chunk.buckets.rbegin(); bucket != chunk.buckets.rend(); ++bucket) {
    const bool last = std::next(bucket) == chunk.buckets.rend();
    if (adapts) update.operands.back().access = last ? Access::read_write : Access::read;
    work.elements = draft_.shard(bucket->elements, bucket->group);
    const TaskId updated = writer_.emit(update, chunk.state, after);
    update.allocates.clear();
    work.first += work.elements;
    gather_->gather_updated(chunk, *bucket, updated);
  }
}

// Writes the update of a chunk of layers. last: whether this chunk is the last one that is updated in the step.
void DeviceUpdate::update_chunk(const Chunk& chunk, bool last, const std::vector<TaskId>& summed) {
  const Strategy& s = spec_.strategy;
  const OptimizerKind kind = s.optimizer.kind;
  const std::vector<TaskId> after = kind == OptimizerKind::muon ? momentum(chunk, summed)
                                    : kind == OptimizerKind::adafactor
                                        ? factored_moments(draft_, writer_, chunk, summed)
                                        : summed;
  const bool master = plan_.blocks[plan_.frames[chunk.state].block].buffers[kMaster].bytes > 0 || row_.fp32_shards;
  const std::uint32_t frame = asynchronous_ != nullptr ? asynchronous_->begin(chunk, !master) : chunk.state;
  Op update = {.name = "update",
               .work = Update{chunk.weights.own, facts_.gradient_width, master ? s.optimizer.master_bytes : 0,
                              s.optimizer.moment_bytes, row_.fp32_shards ? 0 : context_.width, s.optimizer.moments(),
                              spec_.software.kernels.fused_optimizer},
               .phase = Phase::step,
               .optimizer = true,
               .operands = {optimizer_gradients(draft_, Access::read), state(kMaster, Access::read_write),
                            state(kMoment1, Access::read_write), state(kMoment2, Access::read_write),
                            state(row_.shards_parameters ? kParameterShard : kParameters, Access::write)},
               .allocates = {state(kMoment1, Access::write), state(kMoment2, Access::write)}};
  if (kind == OptimizerKind::muon) std::get<Update>(update.work).vectors = chunk.weights.own_vectors;
  if (kind == OptimizerKind::adafactor) update.operands.push_back(state(kBuckets, Access::read));
  if (clips_in_update(draft_)) update.operands.push_back(number(kSquaredNorm, Access::read));
  if (facts_.validates) {
    for (const std::uint16_t of : {validation_->partial_norm(), validation_->whole_norm()})
      update.operands.push_back(number(of, Access::read));
    std::get<Update>(update.work).validated = true;
  }
  if (s.precision == Precision::fp16) {
    if (unscales()) update.operands.push_back(number(kFoundInfinity, Access::read));
    // Chunks are updated one after another; only the last one's update adapts the loss scale, once a step.
    update.operands.push_back(number(kLossScale, last ? Access::read_write : Access::read));
  }
  if (gather_ != nullptr && s.overlap.gather_in_update && !chunk.buckets.empty())
    update_buckets(chunk, update, after);
  else
    writer_.emit(update, frame, after);
  if (!facts_.validates) zero_gradients(draft_, writer_, chunk, {});
}

// Returns whether a separate kernel unscales the gradients of fp16 training. No separate kernel does if the update
// itself multiplies by the clip coefficient; infinite gradients are then detected by the norm.
bool DeviceUpdate::unscales() const {
  return facts_.half && !(spec_.strategy.clip > 0 && spec_.software.kernels.fused_clip);
}

void DeviceUpdate::update() {
  std::vector<TaskId> after = after_reductions(writer_);
  if (!draft_.updates()) {
    for (const Chunk& chunk : chunks_) zero_gradients(draft_, writer_, chunk, after);
    return;
  }
  const bool clips = spec_.strategy.clip > 0;
  if (unscales()) unscale(after);
  if (clips) after = gradient_norm(after);
  if (!spec_.strategy.overlap.gather_in_update) {
    for (const Chunk& chunk : chunks_) update_chunk(chunk, &chunk == &chunks_.back(), after);
    return;
  }
  // The ranks of one all-gather may have their chunks of layers in different orders, so all of them follow the model's
  // order.
  const std::vector<Chunk*> ordered = draft_.in_model_order();
  for (const Chunk* chunk : ordered) update_chunk(*chunk, chunk == ordered.back(), after);
}

}  // namespace orrery
