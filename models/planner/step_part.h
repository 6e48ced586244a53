#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/layout/draft.h"
#include "models/tasks/task_writer.h"

namespace orrery {

// A base class of all classes that write the tasks of a step: it holds the plan draft, and short names for the members
// that are used most.
class StepView {
 public:
  StepView(Draft& draft, TaskWriter& writer)
      : draft_(draft),
        writer_(writer),
        facts_(draft.facts),
        spec_(draft.facts.spec),
        row_(draft.facts.row),
        context_(draft.context),
        schedule_(draft.schedule),
        plan_(draft.plan),
        chunks_(draft.layout.chunks) {}

 protected:
  Draft& draft_;
  TaskWriter& writer_;
  const PlanFacts& facts_;
  const Spec& spec_;
  const ShardingRow& row_;
  const BlockContext& context_;
  const Schedule& schedule_;
  Plan& plan_;
  std::vector<Chunk>& chunks_;  // chunks of the class of ranks (slot) whose tasks are being written
};

// An action of the schedule (forward or backward of a chunk for a micro-batch) whose ops are being issued, block by
// block.
struct Pass {
  // An op that adds a micro-batch's gradients to the sums over micro-batches, and is issued at the end of its action (a
  // backward) instead of at its position among the ops.
  struct Late {
    std::uint32_t op, frame;
    std::size_t entry;
  };

  Action action;
  // indices of the entries (blocks) of the action's chunk, in the order in which the action runs them
  std::vector<std::size_t> entries;
  // position within the action: index into `entries` of the block whose op comes next, and index of that op in its
  // block
  std::size_t at = 0, op = 0;
  bool begun = false;  // whether the first op of block entries[at] was issued
  std::vector<Late> late = {};

  bool done() const { return at == entries.size(); }
  std::size_t entry() const { return entries[at]; }
  bool forward() const { return action.phase == Phase::forward; }
  bool weights_alone() const { return action.phase == Phase::weight_gradient; }
  bool ends_backward() const { return action.phase == Phase::backward || weights_alone(); }
};

// A part of a training step: one technique of the strategy (sharding, offload, updates, ...) that adds tasks to the
// tasks of the schedule's actions. Each part keeps the state that its technique needs while a slot is written. The walk
// over a stage's actions (emit.h) calls the hooks; in each hook parts are called in the order of make_plan()'s list.
class StepPart : public StepView, public TaskWatcher {
 public:
  using StepView::StepView;

  virtual void begin_slot() {}  // forgets what belongs to the previous class of ranks (slot)
  virtual void serve() {}       // writes the complete step of a parameter server, which runs no forward or backward
  virtual void begin_step() {}
  // before_transfer is called before each transfer that the stage issues between two actions, and once more after the
  // last of these transfers; it gets the turn (the index of the action that follows the transfers) and the index of the
  // next transfer. after_turn is called when all transfers of the turn have been issued.
  virtual void before_transfer(std::size_t, std::size_t) {}
  virtual void after_turn(std::size_t) {}
  // Issues a transfer if this class (one technique of the strategy) issues transfers of this kind; returns false if it
  // does not.
  virtual bool issue(const StageTransfer&) { return false; }
  virtual void before_block(const Pass&) {}
  // before_op is called before an op is issued, with the pass (the action being issued) and the ids of the block's ops
  // that are still to be issued.
  virtual void before_op(const Pass&, std::span<const std::uint32_t>) {}
  // after_backward_op is called after an op of backward is issued, with the pass (the action being issued), the index
  // of the block among the chunk's entries, the id of the op and the op's task.
  virtual void after_backward_op(const Pass&, std::size_t, std::uint32_t, TaskId) {}
  virtual void after_block(const Pass&) {}
  virtual void reduce() {}  // called when all gradients of an update are computed; sums them over ranks
  virtual void update() {}  // called when the gradients are summed over ranks
  virtual void end_step() {}
  virtual void end_slot() {}
  // Called for each task that is issued, if this object was given to TaskWriter::watch().
  void issued(const Op&, std::uint32_t, TaskId) override {}
};

}  // namespace orrery
