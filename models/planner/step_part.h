#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/layout/draft.h"
#include "models/tasks/task_writer.h"

namespace orrery {

// The plan draft, and short names for its members that code which writes a step reads most.
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
  std::vector<Chunk>& chunks_;  // chunks of the slot that is being written
};

// An action whose ops are being issued, block by block.
struct Pass {
  // An addition of gradients that is issued only at the end of its action, not when its turn among the ops comes.
  struct Late {
    std::uint32_t op, frame;
    std::size_t entry;
  };

  Action action;
  std::vector<std::size_t> entries;  // entries of the action's chunk, in the order of the action
  std::size_t at = 0, op = 0;        // entry and op that come next
  bool begun = false;                // whether entry `at` has begun
  std::vector<Late> late = {};

  bool done() const { return at == entries.size(); }
  std::size_t entry() const { return entries[at]; }
  bool forward() const { return action.phase == Phase::forward; }
  bool weights_alone() const { return action.phase == Phase::weight_gradient; }
  bool ends_backward() const { return action.phase == Phase::backward || weights_alone(); }
};

// A part of a training step: a feature of the strategy (sharding, offload, updates, ...) that adds tasks to those of
// the schedule's actions. Each part keeps the state that the feature needs while a slot is written. The walk over a
// stage's actions (emit.h) calls the hooks; in each hook parts are called in the order of make_plan()'s list.
class StepPart : public StepView, public TaskWatcher {
 public:
  using StepView::StepView;

  virtual void begin_slot() {}  // resets state of the slot written before
  virtual void serve() {}       // writes the whole step of a parameter server, which runs no actions
  virtual void begin_step() {}
  // Before transfer number `transfer` of a turn, or after the last of them; after the whole turn.
  virtual void before_transfer(std::size_t, std::size_t) {}
  virtual void after_turn(std::size_t) {}
  // Issues a transfer if it belongs to this part; false: another part must issue it.
  virtual bool issue(const StageTransfer&) { return false; }
  virtual void before_block(const Pass&) {}
  // Ops of the block that are still to be issued
  virtual void before_op(const Pass&, std::span<const std::uint32_t>) {}
  virtual void after_backward_op(const Pass&, std::size_t, std::uint32_t, TaskId) {}  // entry, op, the op's task
  virtual void after_block(const Pass&) {}
  virtual void reduce() {}  // all gradients of an update are computed: sums over ranks
  virtual void update() {}  // gradients are summed
  virtual void end_step() {}
  virtual void end_slot() {}
  void issued(const Op&, std::uint32_t, TaskId) override {}  // for parts that were given to TaskWriter::watch()
};

}  // namespace orrery
