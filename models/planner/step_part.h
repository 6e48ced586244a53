#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "models/layout/draft.h"
#include "models/planner/task_writer.h"

namespace orrery {

// A part of a training step: a feature of the strategy that adds tasks of its own to those of the schedule's actions,
// or orders what other parts add. Each part keeps the state that the feature needs while a slot is written.
class StepPart : public TaskWatcher {
 public:
  StepPart(Draft& draft, TaskWriter& writer)
      : draft_(draft),
        writer_(writer),
        facts_(draft.facts),
        spec_(draft.facts.spec),
        row_(draft.facts.row),
        context_(draft.context),
        schedule_(draft.schedule),
        plan_(draft.plan),
        chunks_(draft.layout.chunks) {}

  virtual void begin_step() {}
  virtual void end_step() {}
  void issued(const Op&, std::uint32_t, TaskId) override {}

 protected:
  Draft& draft_;
  TaskWriter& writer_;
  const PlanFacts& facts_;
  const Spec& spec_;
  const ShardingRow& row_;
  BlockContext& context_;
  const Schedule& schedule_;
  Plan& plan_;
  std::vector<Chunk>& chunks_;  // chunks of the slot that is being written
};

}  // namespace orrery
