#include "models/planner/units.h"

namespace orrery {
namespace {

std::int64_t elements_of(const Draft& draft, std::uint32_t unit) {
  std::int64_t sum = 0;
  for (const Region& r : draft.layout.regions.at(unit)) sum += r.elements;
  return sum;
}

// Returns the bytes of `elements` quantised gradients, each of zero_quantize.gradient_bits bits.
Bytes narrow_bytes(const Draft& draft, std::int64_t elements) {
  return ceil_div(elements * draft.facts.spec.strategy.zero_quantize.gradient_bits, 8);
}

Op transfer(const char* name, CollectiveKind kind, Dimension group, Bytes bytes, Phase phase, LaneKind lane,
            const Operand& from, const Operand& to) {
  return {.name = name,
          .work = Collective{.kind = kind, .group = group, .bytes = bytes, .width = 1},
          .phase = phase,
          .lane = lane,
          .operands = {from, to},
          .allocates = {to}};
}

}  // namespace

void gather_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase,
                   const std::vector<TaskId>& after) {
  const Operand shard = unit(kCastShard, Access::write);
  const Op narrow = {.name = "narrow shard",
                     .work = Cast{draft.shard(draft.layout.regions.at(frame)), draft.context.width, 1},
                     .phase = phase,
                     .lane = LaneKind::data_gather,
                     .host_waits = true,
                     .operands = {state(kParameterShard, Access::read), shard},
                     .allocates = {shard}};
  writer.emit(narrow, frame, after);
  Op gather = transfer("gather unit", CollectiveKind::all_gather, Dimension::data, elements_of(draft, frame), phase,
                       LaneKind::data_gather, unit(kCastShard, Access::read), unit(kNarrowWeights, Access::write));
  gather.frees = {unit(kCastShard, Access::read)};
  writer.emit(gather, frame, after);
}

void gather_in_node(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase,
                    const std::vector<TaskId>& after) {
  const Bytes width = draft.context.width;
  Op gather = transfer("gather unit in node", CollectiveKind::all_gather, Dimension::data_in_node,
                       elements_of(draft, frame) * width, phase, LaneKind::data_gather,
                       state(kSecondaryShard, Access::read), unit(kGathered, Access::write));
  gather.host_waits = true;
  std::get<Collective>(gather.work).width = width;
  if (draft.group_size(Dimension::data_in_node) == 1) {
    gather.name = "copy unit";
    gather.work = Cast{elements_of(draft, frame), width, width};
  }
  writer.emit(gather, frame, after);
}

void widen(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase) {
  const Op op = {.name = "widen unit",
                 .work = Cast{elements_of(draft, frame), 1, draft.context.width},
                 .phase = phase,
                 .operands = {unit(kNarrowWeights, Access::read), unit(kGathered, Access::write)},
                 .allocates = {unit(kGathered, Access::write)},
                 .frees = {unit(kNarrowWeights, Access::read)}};
  writer.emit(op, frame);
}

void keep_secondary(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase) {
  const std::int64_t part = ceil_div(elements_of(draft, frame), draft.group_size(Dimension::data_in_node));
  const Op op = {.name = "keep secondary shard",
                 .work = Cast{part, draft.context.width, draft.context.width},
                 .phase = phase,
                 .operands = {unit(kGathered, Access::read), state(kSecondaryShard, Access::write)}};
  writer.emit(op, frame);
}

LaneKind reduce_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t frame) {
  const Bytes width = draft.context.width;
  const std::int64_t in_node = draft.group_size(Dimension::data_in_node);
  // number of quantised gradients that one byte holds
  const std::int64_t each = 8 / draft.facts.spec.strategy.zero_quantize.gradient_bits;
  const std::int64_t elements = elements_of(draft, frame), part = ceil_div(elements, in_node);
  const auto narrow = [&](const char* name, std::int64_t bytes, Bytes from, UnitSlot source, UnitSlot to) {
    const Op op = {.name = name,
                   .work = Cast{bytes, from, 1},
                   .phase = Phase::backward,
                   .operands = {unit(source, Access::read), unit(to, Access::write)},
                   .allocates = {unit(to, Access::write)},
                   .frees = {unit(source, Access::read)}};
    writer.emit(op, frame);
  };
  const auto exchange = [&](const char* name, Dimension group, std::int64_t n) {
    Op op =
        transfer(name, CollectiveKind::all_to_all, group, narrow_bytes(draft, n), Phase::backward,
                 LaneKind::data_reduce, unit(kNarrowGradients, Access::read), unit(kArrivedGradients, Access::write));
    op.frees = {unit(kNarrowGradients, Access::read)};
    writer.emit(op, frame);
  };
  narrow("narrow gradients", narrow_bytes(draft, elements), each * width, kUnitGradient, kNarrowGradients);
  exchange("exchange gradients in node", Dimension::data_in_node, elements);
  narrow("sum in node", narrow_bytes(draft, part), in_node, kArrivedGradients, kNarrowGradients);
  exchange("exchange gradients between nodes", Dimension::data_over_nodes, part);
  const Op add = {.name = "add unit",
                  .work = Accumulate{draft.shard(draft.layout.regions.at(frame)), 1, draft.facts.gradient_width},
                  .phase = Phase::backward,
                  .operands = {unit(kArrivedGradients, Access::read), state(kGradientShard, Access::read_write)},
                  .frees = {unit(kArrivedGradients, Access::read)}};
  writer.emit(add, frame);
  return LaneKind::compute;
}

}  // namespace orrery
