#pragma once

#include <memory>
#include <span>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

using StepParts = std::vector<std::unique_ptr<StepPart>>;

// Writes the tasks of a class of ranks in the order in which the host issues them: the actions of the schedule, op by
// op, with the transfers between actions. All other tasks are written by the step parts (step_part.h), whose hooks this
// class calls.
class StepWalk : public StepView {
 public:
  StepWalk(Draft& draft, TaskWriter& writer, const StepParts& parts) : StepView(draft, writer), parts_(parts) {}

  void write_slot();  // writes the tasks of the class of ranks (slot) that was added to the plan last

 private:
  void walk();
  void end_step();
  void turn(std::size_t turn);
  void issue(const StageTransfer& transfer);
  void cross(const StageTransfer& transfer);
  void wait_for_input(const Action& action);
  Pass begin(const Action& action) const;
  void run(std::span<const Action> woven, bool steady);
  bool adds_late(const Pass& pass, const Op& op) const;
  bool issue_next(Pass& pass);  // issues one op; returns whether the op is a transfer or collective

  template <class Hook, class... Arguments>
  void tell(Hook hook, const Arguments&... arguments) {
    for (const auto& part : parts_) ((*part).*hook)(arguments...);
  }

  const StepParts& parts_;
};

}  // namespace orrery
