#include "models/planner/matrix_optimizers.h"

#include "models/planner/gradient_ops.h"

namespace orrery {

std::vector<TaskId> factored_moments(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                     const std::vector<TaskId>& after) {
  std::vector<TaskId> ready = after;
  std::int64_t tensors = 0;
  for (const Entry& e : chunk.entries) {
    for (const LocalParameter& p : draft.plan.blocks[e.block].parameters) tensors += e.owns && !p.frozen ? 1 : 0;
  }
  const auto pass = [&](const char* name, const char* sum, std::int64_t sums) {
    const Op squares = {.name = name,
                        .work = SquaredNorm{chunk.weights.own, draft.facts.gradient_width},
                        .phase = Phase::step,
                        .optimizer = true,
                        .operands = {optimizer_gradients(draft, Access::read), state(kMoment2, Access::read_write)},
                        .allocates = {state(kMoment2, Access::write)}};
    ready = {writer.emit(squares, chunk.state, ready)};
    if (draft.shards(Dimension::data) == 1) return;
    const Op reduce = {.name = sum,
                       .work = Collective{.group = Dimension::data, .bytes = sums * 4, .width = 4},
                       .phase = Phase::step,
                       .lane = LaneKind::data_reduce,
                       .operands = {state(kMoment2, Access::read_write)}};
    ready = {writer.emit(reduce, chunk.state, ready)};
  };
  pass("row and column sums", "reduce row and column sums", chunk.weights.sums);
  pass("update norms", "reduce update norms", tensors);
  return ready;
}

}  // namespace orrery
