#include "models/planner/gradient_ops.h"

namespace orrery {

Operand optimizer_gradients(const Draft& draft, Access access) {
  return state(draft.facts.unit_gradients ? kGradientShard : kGradients, access);
}

bool clips_in_update(const Draft& draft) {
  return draft.facts.spec.strategy.clip > 0 && draft.facts.spec.software.kernels.fused_clip && !draft.facts.validates;
}

void average(const Draft& draft, TaskWriter& writer, std::uint32_t frame, const Operand& gradients, std::int64_t first,
             std::int64_t elements) {
  if (draft.facts.averaging == Averaging::none) return;
  Op op = {.name = "average gradients",
           .work = Multiply{elements, draft.facts.gradient_width,
                            1 / static_cast<double>(draft.facts.spec.strategy.loss_ranks()), false, first},
           .phase = Phase::step,
           .operands = {gradients}};
  if (draft.facts.averaging == Averaging::copy) {
    op.operands.front().access = Access::read;
    op.operands.push_back(state(kBuckets, Access::write));
  }
  writer.emit(op, frame);
}

void zero_gradients(const Draft& draft, TaskWriter& writer, const Chunk& chunk, const std::vector<TaskId>& after) {
  const auto zero = [&](const Operand& gradients, std::int64_t elements) {
    const Op op = {.name = "zero gradients",
                   .work = Fill{elements * draft.facts.gradient_width},
                   .phase = Phase::step,
                   .optimizer = true,
                   .operands = {gradients}};
    writer.emit(op, chunk.state, after);
  };
  const bool units = draft.facts.unit_gradients;
  zero(optimizer_gradients(draft, Access::write), units ? chunk.weights.own : chunk.weights.all);
  if (units && !draft.facts.fresh_gradients) zero(state(kGradients, Access::write), chunk.weights.all);
}

std::vector<TaskId> after_reductions(const TaskWriter& writer) {
  return {writer.last_of(LaneKind::data_reduce), writer.last_of(LaneKind::expert_reduce),
          writer.last_of(LaneKind::replicate), writer.last_of(LaneKind::tensor), writer.last_of(LaneKind::embedding)};
}

std::vector<TaskId> sum_over_model(const Draft& draft, TaskWriter& writer, const char* name, std::uint16_t of,
                                   bool maximum) {
  const Dimension over = draft.facts.validates ? Dimension::tensor : Dimension::model;
  if (draft.group_size(over) == 1) return {writer.last_of(LaneKind::compute)};
  const Op op = {.name = name,
                 .work = Collective{.group = over, .bytes = 4, .width = 4, .maximum = maximum},
                 .phase = Phase::step,
                 .lane = LaneKind::model,
                 .operands = {number(of, Access::read_write)}};
  return {writer.emit(op, draft.layout.chunks.front().state, {writer.last_of(LaneKind::compute)})};
}

std::vector<TaskId> device_norm(const Draft& draft, TaskWriter& writer, std::uint16_t to,
                                const std::vector<TaskId>& after) {
  for (const Chunk& chunk : draft.layout.chunks) {
    const Op op = {
        .name = "gradient norm",
        .work = SquaredNorm{chunk.weights.own, draft.facts.gradient_width},
        .phase = Phase::step,
        .optimizer = true,
        .operands = {optimizer_gradients(draft, Access::read),
                     number(to, &chunk == &draft.layout.chunks.front() ? Access::write : Access::read_write)}};
    writer.emit(op, chunk.state, after);
  }
  return sum_over_model(draft, writer, "reduce gradient norm", to, false);
}

}  // namespace orrery
