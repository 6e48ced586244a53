#include "models/planner/servers.h"

#include <algorithm>
#include <cassert>

namespace orrery {

void Servers::begin_step() {
  if (row_.master) hand_out_weights();
  if (row_.servers && spec_.strategy.overlap.parameter_gather) pull_buckets();
}

void Servers::end_step() {
  if (row_.servers && !spec_.strategy.overlap.parameter_gather) pull_buckets();
}

// Broadcasts the weights to every rank before forward begins, as torch.nn.DataParallel does.
void Servers::hand_out_weights() {
  const Chunk& chunk = chunks_.front();
  for (auto bucket = chunk.buckets.rbegin(); bucket != chunk.buckets.rend(); ++bucket) {
    const Op op = {.name = "broadcast weights",
                   .work = Collective{.kind = CollectiveKind::broadcast,
                                      .group = Dimension::data,
                                      .bytes = bucket->elements * context_.width,
                                      .width = context_.width,
                                      .first = bucket->first},
                   .phase = Phase::step,
                   .lane = LaneKind::data_gather,
                   .operands = {state(kParameters, Access::read_write)}};
    writer_.hold({writer_.emit(op, chunk.state)});
  }
}

void Servers::give(const Chunk& chunk, const Bucket& bucket, TaskId after) {
  Op op = {.name = "reduce gradients",
           .work = Collective{.kind = CollectiveKind::reduce,
                              .group = Dimension::data,
                              .bytes = bucket.elements * facts_.gradient_width,
                              .width = facts_.gradient_width,
                              .first = bucket.first},
           .phase = Phase::step,
           .lane = LaneKind::data_reduce,
           .operands = {state(kGradients, Access::read_write)}};
  if (row_.servers) {
    auto& push = std::get<Collective>(op.work);
    op.name = "push gradients";
    push.kind = CollectiveKind::push;
    push.group = Dimension::world;
    push.servers = plan_.ranges();
    push.copies = plan_.copies;
    const bool serves = context_.duty == Duty::server;
    op.operands = {serves ? state(kGradientShard, Access::write) : state(kGradients, Access::read)};
    if (!serves && draft_.at.rank_kind == 0) pushed_.push_back(bucket.first);
  }
  writer_.emit(op, chunk.state, {after});
}

// Writes the pulls of weights from the parameter servers; workers pull buckets in the order in which forward needs
// them, and servers answer in the same order.
void Servers::pull_buckets() {
  const Chunk& chunk = chunks_.front();
  const bool serves = context_.duty == Duty::server;
  for (auto bucket = chunk.buckets.rbegin(); bucket != chunk.buckets.rend(); ++bucket) {
    const Op op = {.name = "pull weights",
                   .work = Collective{.kind = CollectiveKind::pull,
                                      .group = Dimension::world,
                                      .bytes = bucket->elements * context_.width,
                                      .width = context_.width,
                                      .first = bucket->first,
                                      .servers = plan_.ranges(),
                                      .copies = plan_.copies},
                   .phase = Phase::step,
                   .lane = LaneKind::data_gather,
                   .operands = {serves ? state(kParameterShard, Access::read) : state(kParameters, Access::write)}};
    const TaskId task =
        writer_.emit(op, chunk.state, {writer_.last_of(LaneKind::compute), writer_.last_of(LaneKind::cpu)});
    for (const std::uint32_t u : bucket->units) writer_.note_write(u, kParameters, task);
  }
}

void Servers::serve() {
  const Chunk& chunk = chunks_.front();
  const bool early = spec_.strategy.overlap.parameter_gather;
  if (early) pull_buckets();
  for (const std::int64_t first : pushed_) {
    const auto bucket =
        std::find_if(chunk.buckets.begin(), chunk.buckets.end(), [&](const Bucket& b) { return b.first == first; });
    assert(bucket != chunk.buckets.end());
    give(chunk, *bucket, kNone);
  }
  const TaskId pushed = writer_.last_of(LaneKind::data_reduce);
  update_range(spec_.strategy.clip > 0 ? norm({pushed}) : std::vector{pushed});
  if (!early) pull_buckets();
}

std::vector<TaskId> Servers::norm(const std::vector<TaskId>& after) {
  const Chunk& chunk = chunks_.front();
  const Op norm = {.name = "gradient norm",
                   .work = SquaredNorm{chunk.weights.own, facts_.gradient_width},
                   .phase = Phase::step,
                   .lane = LaneKind::cpu,
                   .optimizer = true,
                   .operands = {state(kGradientShard, Access::read), number(kSquaredNorm, Access::write)}};
  const TaskId own = writer_.emit(norm, chunk.state, after);
  if (plan_.servers == 1) return {own};
  const Op sum = {.name = "reduce gradient norm",
                  .work = Collective{.group = Dimension::model, .bytes = 4, .width = 4},
                  .phase = Phase::step,
                  .lane = LaneKind::model,
                  .operands = {number(kSquaredNorm, Access::read_write)}};
  return {writer_.emit(sum, chunk.state, {own})};
}

void Servers::update_range(const std::vector<TaskId>& after) {
  const Chunk& chunk = chunks_.front();
  const Optimizer& o = spec_.strategy.optimizer;
  const bool master = plan_.blocks[plan_.frames[chunk.state].block].buffers[kMaster].bytes > 0;
  Op op = {.name = "update",
           .work = Update{.elements = chunk.weights.own,
                          .gradient = facts_.gradient_width,
                          .master = master ? o.master_bytes : 0,
                          .moment = o.moment_bytes,
                          .forward = context_.width,
                          .moments = o.moments()},
           .phase = Phase::step,
           .lane = LaneKind::cpu,
           .optimizer = true,
           .operands = {state(kGradientShard, Access::read), state(kMaster, Access::read_write),
                        state(kMoment1, Access::read_write), state(kMoment2, Access::read_write),
                        state(kParameterShard, Access::write)},
           .allocates = {state(kMoment1, Access::write), state(kMoment2, Access::write)}};
  std::vector<TaskId> before = after;
  // The update must not overwrite weights that workers are still pulling.
  before.push_back(writer_.last_of(LaneKind::data_gather));
  if (spec_.strategy.clip > 0) op.operands.push_back(number(kSquaredNorm, Access::read));
  writer_.emit(op, chunk.state, before);
}

}  // namespace orrery
