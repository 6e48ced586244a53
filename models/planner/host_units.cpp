#include "models/planner/host_units.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/partition/rank_groups.h"
#include "models/planner/host_copies.h"
#include "models/planner/shared_gradients.h"

namespace orrery {

void HostUnits::fetch(std::uint32_t unit_frame, std::uint32_t state_frame, Phase phase) {
  if (!staged_.insert(unit_frame).second) return;
  plan_.frames[unit_frame].unit = unit_frame;
  plan_.frames[unit_frame].state = state_frame;
  Op op = copy_op("shard from disk", phase,
                  {.bytes = draft_.shard(draft_.layout.regions.at(unit_frame)) * context_.width,
                   .from = spec_.strategy.offload.parameters,
                   .to = MemoryTier::host},
                  state(kParameterShard, Access::read), unit(kStagedShard, Access::write));
  op.allocates = {unit(kStagedShard, Access::write)};
  writer_.emit(op, unit_frame);
}

bool HostUnits::copied_alone(std::uint32_t unit_frame) const {
  const Regions& regions = draft_.layout.regions.at(unit_frame);
  return facts_.host_parameters() && !row_.fp32_shards && regions.size() == 1 &&
         draft_.group_size(regions.front().group) == 1;
}

void HostUnits::upload(std::uint32_t unit_frame, std::uint32_t state_frame, Phase phase,
                       const std::vector<TaskId>& after) {
  const bool disk = behind_host(spec_.strategy.offload.parameters);
  if (disk) fetch(unit_frame, state_frame, phase);
  staged_.erase(unit_frame);
  const UnitSlot first = row_.fp32_shards ? kRaisedShard : copied_alone(unit_frame) ? kGathered : kCastShard;
  const Operand to = unit(first, Access::write);
  Op op = copy_op("shard up", phase,
                  {.bytes = draft_.shard(draft_.layout.regions.at(unit_frame)) * draft_.shard_width(),
                   .from = MemoryTier::host,
                   .to = MemoryTier::device},
                  disk ? unit(kStagedShard, Access::read) : state(kParameterShard, Access::read), to);
  op.host_waits = true;
  op.allocates = {to};
  if (disk) op.frees = {unit(kStagedShard, Access::read)};
  writer_.emit(op, unit_frame, after);
}

bool HostUnits::upload_frozen(std::uint32_t unit_frame, Phase phase, const std::vector<TaskId>& after) {
  const Regions& regions = draft_.layout.frozen.at(unit_frame);
  const bool whole = regions.size() == 1 && draft_.group_size(regions.front().group) == 1;
  const Operand to = unit(whole ? kGatheredFrozen : kCastShard, Access::write);
  Op op =
      copy_op("frozen shard up", phase,
              {.bytes = draft_.shard(regions) * plan_.frozen_width, .from = MemoryTier::host, .to = MemoryTier::device},
              state(kFrozenShard, Access::read), to);
  op.host_waits = true;
  op.allocates = {to};
  writer_.emit(op, unit_frame, after);
  return whole;
}

void HostUnits::upload_gradients(std::uint32_t unit_frame) {
  const Bytes bytes = draft_.shard(draft_.layout.regions.at(unit_frame)) * facts_.gradient_width;
  const bool disk = behind_host(spec_.strategy.offload.gradients);
  if (disk) {
    Op fetch = copy_op("gradients from disk", Phase::backward,
                       {.bytes = bytes, .from = spec_.strategy.offload.gradients, .to = MemoryTier::host},
                       state(arriving_gradients(facts_), Access::read), unit(kStagedGradient, Access::write));
    fetch.allocates = {unit(kStagedGradient, Access::write)};
    writer_.emit(fetch, unit_frame);
  }
  Op up = copy_op("gradients up", Phase::backward, {.bytes = bytes, .from = MemoryTier::host, .to = MemoryTier::device},
                  disk ? unit(kStagedGradient, Access::read) : state(arriving_gradients(facts_), Access::read),
                  unit(kReduced, Access::write));
  up.allocates = {unit(kReduced, Access::write)};
  if (disk) up.frees = {unit(kStagedGradient, Access::read)};
  writer_.emit(up, unit_frame);
}

// Sums the squares of a unit's gradients while they are on the device, after their reduction (DeepSpeed:
// set_norm_for_param_grad_in_gpu).
TaskId HostUnits::norm_of_unit(std::uint32_t unit_frame, LaneKind lane) {
  const std::uint16_t to = facts_.delayed() ? kNextNorm : kSquaredNorm;
  const Op op = {
      .name = "gradient norm",
      .work = SquaredNorm{draft_.shard(draft_.layout.regions.at(unit_frame)), facts_.gradient_width},
      .phase = Phase::backward,
      .lane = lane,
      .optimizer = true,
      .operands = {unit(kReduced, Access::read), number(to, norm_begun_ ? Access::read_write : Access::write)}};
  norm_begun_ = true;
  return writer_.emit(op, unit_frame);
}

void HostUnits::offload_gradients(std::uint32_t unit_frame, TaskId after) {
  const Bytes bytes = draft_.shard(draft_.layout.regions.at(unit_frame)) * facts_.gradient_width;
  const bool disk = behind_host(spec_.strategy.offload.gradients);
  const Operand from = facts_.host_gradients() ? unit(kReduced, Access::read) : state(kGradientShard, Access::read);
  const Operand to = disk ? unit(kStagedGradient, Access::write) : state(arriving_gradients(facts_), Access::write);
  Op down = copy_op("gradients down", Phase::backward,
                    {.bytes = bytes, .from = MemoryTier::device, .to = MemoryTier::host}, from, to);
  if (facts_.host_gradients()) down.frees = {from};
  if (disk) down.allocates = {to};
  writer_.emit(down, unit_frame, {after});
  if (!disk) return;
  Op store = copy_op("gradients to disk", Phase::backward,
                     {.bytes = bytes, .from = MemoryTier::host, .to = spec_.strategy.offload.gradients},
                     unit(kStagedGradient, Access::read), state(arriving_gradients(facts_), Access::write));
  store.frees = {unit(kStagedGradient, Access::read)};
  writer_.emit(store, unit_frame);
}

// Sums this rank's shard of a unit's gradients over those ranks of a replica of the model that each compute a part of
// the gradient (for example of norms under sequence parallelism). The sum runs after the unit's reduction, on the same
// lane, before the shard is offloaded. All these ranks have equal units, so they own the same part of a unit.
void HostUnits::sum_unit_over_model(const Chunk& chunk, std::uint32_t unit_frame) {
  std::map<std::pair<Dimension, Part>, std::int64_t> elements;
  for (const Entry& entry : chunk.entries) {
    for (const LocalParameter& p : plan_.blocks[entry.block].parameters) {
      // whether the weight is a tile (a part of a large weight) that is gathered by itself
      const bool apart = row_.shards_parameters && p.tile > 0;
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

void HostUnits::finish(const Chunk& chunk, std::uint32_t unit_frame, LaneKind lane) {
  sum_unit_over_model(chunk, unit_frame);
  const bool table = std::any_of(chunk.entries.begin(), chunk.entries.end(), [&](const Entry& e) {
    const std::vector<LocalParameter>& parameters = plan_.blocks[e.block].parameters;
    return e.unit == unit_frame && !parameters.empty() && parameters.front().name == kEmbeddingTable;
  });
  if (table && shares_table(draft_)) {
    late_unit_ = unit_frame;
    return;
  }
  const TaskId read = facts_.host_gradients() && facts_.takes_norm() ? norm_of_unit(unit_frame, lane) : kNone;
  offload_gradients(unit_frame, read);
}

// Sums the gradient of an embedding table over the first and the last stage, which both hold the table. The table is
// the first region of its unit; both stages cut this region into the same shards.
void HostUnits::reduce() {
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
  offload_gradients(late_unit_, read == kNone ? summed : read);
  late_unit_ = kNone;
}

}  // namespace orrery
