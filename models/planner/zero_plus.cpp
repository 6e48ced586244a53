#include "models/planner/units.h"
#include "models/spec/gradients.h"
#include "models/spec/narrow_transfers.h"

namespace orrery {
namespace {

// The weights of one unit in the transfers of ZeRO++: they are cut over all data ranks, of which `in_node` are on each
// of `nodes` nodes. shard: number of elements of a rank's shard, of which the last shards may have fewer.
struct NarrowUnit {
  NarrowUnit(const Draft& draft, std::uint32_t frame)
      : elements(draft.layout.regions.at(frame).front().elements),
        ranks(draft.group_size(Dimension::data)),
        in_node(draft.group_size(Dimension::data_in_node)),
        nodes(ranks / in_node),
        shard(draft.shard(draft.layout.regions.at(frame))) {}
  std::int64_t elements, ranks, in_node, nodes, shard;
};

Op transfer(const char* name, CollectiveKind kind, Dimension group, Bytes bytes, Phase phase, LaneKind lane,
            const Operand& from, const Operand& to) {
  return {.name = name,
          .work = Collective{.kind = kind, .group = group, .bytes = bytes, .width = 1},
          .phase = phase,
          .lane = lane,
          .operands = {from, to},
          .allocates = {to},
          .frees = {from}};
}

}  // namespace

void gather_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase,
                   const std::vector<TaskId>& after) {
  const NarrowUnit u(draft, frame);
  const NarrowFormat format = gathered_format(draft.facts.spec);
  const Operand shard = unit(kCastShard, Access::write);
  const Op narrow = {.name = "narrow shard",
                     .work = Quantize{.format = format, .elements = u.shard, .wide = draft.context.width},
                     .phase = phase,
                     .lane = LaneKind::data_gather,
                     .host_waits = true,
                     .operands = {state(kParameterShard, Access::read), shard},
                     .allocates = {shard}};
  writer.emit(narrow, frame, after);
  const Op gather =
      transfer("gather unit", CollectiveKind::all_gather, Dimension::data, u.ranks * narrow_bytes(format, u.shard),
               phase, LaneKind::data_gather, unit(kCastShard, Access::read), unit(kNarrowWeights, Access::write));
  writer.emit(gather, frame, after);
}

TaskId gather_in_node(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase,
                      const std::vector<TaskId>& after) {
  const Bytes width = draft.context.width;
  const NarrowUnit u(draft, frame);
  Op gather =
      transfer("gather unit in node", CollectiveKind::all_gather, Dimension::data_in_node, u.elements * width, phase,
               LaneKind::data_gather, state(kSecondaryShard, Access::read), unit(kGathered, Access::write));
  gather.host_waits = true;
  gather.frees.clear();
  std::get<Collective>(gather.work).width = width;
  if (u.in_node == 1) {
    gather.name = "copy unit";
    gather.work = Cast{u.elements, width, width};
  }
  return writer.emit(gather, frame, after);
}

static void widen(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase) {
  const NarrowUnit u(draft, frame);
  const Op op = {.name = "widen unit",
                 .work = Dequantize{.format = gathered_format(draft.facts.spec),
                                    .elements = u.elements,
                                    .pieces = u.ranks,
                                    .wide = draft.context.width},
                 .phase = phase,
                 .operands = {unit(kNarrowWeights, Access::read), unit(kGathered, Access::write)},
                 .allocates = {unit(kGathered, Access::write)},
                 .frees = {unit(kNarrowWeights, Access::read)}};
  writer.emit(op, frame);
}

static void keep_secondary(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase, TaskId read) {
  const NarrowUnit u(draft, frame);
  const Op op = {.name = "keep secondary shard",
                 .work = Cast{ceil_div(u.elements, u.in_node), draft.context.width, draft.context.width},
                 .phase = phase,
                 .operands = {unit(kGathered, Access::read), state(kSecondaryShard, Access::write)}};
  writer.emit(op, frame, {read});
}

void widen_and_keep(const Draft& draft, TaskWriter& writer, std::uint32_t frame, Phase phase, TaskId read) {
  const ZeroQuantize& narrow = draft.facts.spec.strategy.zero_quantize;
  if (narrow.weight_bits > 0) widen(draft, writer, frame, phase);
  if (narrow.secondary_shards) keep_secondary(draft, writer, frame, phase, read);
}

void reduce_narrow(const Draft& draft, TaskWriter& writer, std::uint32_t frame) {
  const NarrowUnit u(draft, frame);
  const Bytes width = draft.context.width;
  const NarrowFormat format = reduced_format(draft.facts.spec);
  const Bytes shard = narrow_bytes(format, u.shard);
  const auto narrow = [&](const char* name, const Quantize& work, UnitSlot source) {
    const Op op = {.name = name,
                   .work = work,
                   .phase = Phase::backward,
                   .lane = LaneKind::data_reduce,
                   .operands = {unit(source, Access::read), unit(kNarrowGradients, Access::write)},
                   .allocates = {unit(kNarrowGradients, Access::write)},
                   .frees = {unit(source, Access::read)}};
    writer.emit(op, frame);
  };
  const auto exchange = [&](const char* name, Dimension group, std::int64_t shards) {
    writer.emit(
        transfer(name, CollectiveKind::all_to_all, group, shards * shard, Phase::backward, LaneKind::data_reduce,
                 unit(kNarrowGradients, Access::read), unit(kArrivedGradients, Access::write)),
        frame);
  };
  narrow("narrow gradients",
         {.format = format, .elements = u.elements, .pieces = u.ranks, .wide = width, .nodes = u.nodes}, kUnitGradient);
  exchange("exchange gradients in node", Dimension::data_in_node, u.ranks);
  narrow("sum in node",
         {.format = format, .elements = u.nodes * u.shard, .pieces = u.nodes, .wide = width, .summands = u.in_node},
         kArrivedGradients);
  exchange("exchange gradients between nodes", Dimension::data_over_nodes, u.nodes);
  const bool averages = draft.facts.averaging != Averaging::none;
  const Op add = {
      .name = "add unit",
      .work = Dequantize{.format = format,
                         .elements = u.shard,
                         .wide = draft.facts.gradient_width,
                         .summands = u.nodes,
                         .factor = averages ? 1 / static_cast<double>(draft.facts.spec.strategy.loss_ranks()) : 1,
                         .adds = true},
      .phase = Phase::backward,
      .lane = LaneKind::data_reduce,
      .operands = {unit(kArrivedGradients, Access::read), state(kGradientShard, Access::read_write)},
      .frees = {unit(kArrivedGradients, Access::read)}};
  writer.emit(add, frame);
}

}  // namespace orrery
