#include "models/layout/whole_layers.h"
#include "models/planner/gradient_ops.h"
#include "models/planner/matrix_optimizers.h"

namespace orrery {
namespace {

// Writes the passes over gradients that come before Adafactor's update, and the sums of their results over the ranks
// that have parts of the tensors.
class Passes {
 public:
  Passes(const Draft& draft, TaskWriter& writer, const Chunk& chunk, std::vector<TaskId> after)
      : draft_(draft), writer_(writer), chunk_(chunk), ready_(std::move(after)) {}

  // width: bytes that the pass reads of each element
  void write(const char* name, SquaredNorm::Of of, Bytes width, std::vector<Operand> operands,
             std::vector<Operand> allocates = {}) {
    if (clips_in_update(draft_)) operands.push_back(number(kSquaredNorm, Access::read));
    emit({.name = name,
          .work = SquaredNorm{chunk_.weights.own, width, of},
          .phase = Phase::step,
          .optimizer = true,
          .operands = std::move(operands),
          .allocates = std::move(allocates)});
  }

  // Sums numbers in fp32 over the ranks with shards of the tensors, then over the ranks of tensor parallelism.
  void sum(const char* name, std::uint16_t buffer, std::int64_t numbers) {
    const auto over = [&](Dimension group, LaneKind lane) {
      emit({.name = name,
            .work = Collective{.group = group, .bytes = numbers * 4, .width = 4},
            .phase = Phase::step,
            .lane = lane,
            .operands = {state(buffer, Access::read_write)}});
    };
    if (draft_.shards(Dimension::data) > 1) over(Dimension::data, LaneKind::data_reduce);
    if (draft_.group_size(Dimension::tensor) > 1) over(Dimension::tensor, LaneKind::tensor);
  }

  const std::vector<TaskId>& ready() const { return ready_; }

 private:
  void emit(const Op& op) { ready_ = {writer_.emit(op, chunk_.state, ready_)}; }

  const Draft& draft_;
  TaskWriter& writer_;
  const Chunk& chunk_;
  std::vector<TaskId> ready_;
};

}  // namespace

std::vector<TaskId> factored_moments(const Draft& draft, TaskWriter& writer, const Chunk& chunk,
                                     const std::vector<TaskId>& after) {
  Passes passes(draft, writer, chunk, after);
  const Operand gradients = optimizer_gradients(draft, Access::read);
  passes.write("row and column sums", SquaredNorm::Of::lines, draft.facts.gradient_width,
               {gradients, state(kMoment2, Access::read_write)}, {state(kMoment2, Access::write)});
  passes.sum("reduce row and column sums", kMoment2, chunk.weights.sums);
  const std::int64_t masters = draft.plan.blocks[draft.plan.frames[chunk.state].block].buffers[kMaster].bytes;
  const Optimizer& o = draft.facts.spec.strategy.optimizer;
  const Bytes weight_width = masters > 0 || draft.facts.row.fp32_shards ? o.master_bytes : draft.context.width;
  const std::uint16_t weights = draft.facts.row.shards_parameters ? kParameterShard : kParameters;
  passes.write("update norms", SquaredNorm::Of::updates, draft.facts.gradient_width + weight_width,
               {gradients, state(kMaster, Access::read), state(weights, Access::read), state(kMoment2, Access::read),
                state(kBuckets, Access::write)});
  passes.sum("reduce update norms", kBuckets, tensor_norms(draft, chunk));
  return passes.ready();
}

}  // namespace orrery
