#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// Returns whether the weights are updated right after this action of the schedule; the update at the end of the plan
// does not count.
bool ends_update(const Draft& draft, const Action& action);

// The planner's class that updates weights in a schedule without flushes, where an update may come between a
// micro-batch's forward and its backward. Plans of such schedules hold several steps and several versions of the
// weights.
class AsynchronousUpdates : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { updates_ = 0; }
  void end_step() override { ++updates_; }
  // At the end of the plan, copies the newest weights to the buffers that held the weights before the first update, so
  // that the plan can run again.
  void end_slot() override;

  // Returns the id of the frame (instance of buffers) in which the next update of a chunk of layers runs. Weights that
  // are updated in place are first copied to the frame of the new version.
  std::uint32_t begin(const Chunk& chunk, bool in_place);

 private:
  std::uint32_t update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to);
  void copy_weights(const Chunk& chunk, std::uint32_t frame);

  std::int64_t updates_ = 0;  // number of updates whose tasks are written so far
};

// The number of micro-batches that a rank of a frozen model on ranks of its own may have computed, but not passed on,
// or be computing: one is sent while the next one is computed.
inline constexpr std::int64_t kMicroBatchesAhead = 2;

// The planner's class that keeps the ranks of a frozen model from running ahead of those that take its output, because
// every micro-batch ahead has buffers of its own: the host issues a forward only once the output of the micro-batch
// kMicroBatchesAhead before has been sent, to the next stage or to the model that trains. At the end of a step it waits
// until all output has been sent.
class RunAhead : public StepPart {
 public:
  RunAhead(Draft& draft, TaskWriter& writer) : StepPart(draft, writer) { writer.watch(*this); }

  void begin_slot() override { sent_.clear(); }
  void before_block(const Pass& pass) override;
  void issued(const Op& op, std::uint32_t frame, TaskId task) override;
  void end_step() override;

 private:
  std::map<std::int64_t, std::vector<TaskId>> sent_;  // for each micro-batch, the transfers that pass its output on
};

}  // namespace orrery
