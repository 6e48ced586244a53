#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/planner/step_part.h"
#include "models/schedule/transfer_order.h"

namespace orrery {

// Post-update validation (Qi et al. 2024, arXiv 2401.10241, section 4): a stage updates with the gradient norm of the
// stages up to itself, and begins the next step; during that step the last stage sends back the norm over all stages.
// If that norm requires clipping, or is not finite, every stage rolls its update back, makes it again, and reruns its
// tasks since the update.

// A position in the order of a pipeline stage's transfers: before transfer number `transfer` of the transfers that the
// stage issues just before its action number `turn`, or after the last of these transfers.
struct TransferPlace {
  std::size_t turn = 0, transfer = 0;

  friend bool operator==(const TransferPlace&, const TransferPlace&) = default;
};

// Returns for every stage the last position in its transfer order, before its first backward, up to which all stages
// can rerun their tasks together: no transfer may have its send before these positions and its receive after them, or
// the other way round. Transfers of evicted activations and exchanges of a shared vocabulary come after the position.
std::vector<TransferPlace> validation_places(const Schedule& schedule, const TransferOrder& transfer_order);

// The planner's class for post-update validation: updates that are validated in the next step.
class PostValidation : public StepPart {
 public:
  PostValidation(Draft& draft, TaskWriter& writer);

  void before_transfer(std::size_t turn, std::size_t transfer) override;
  void after_turn(std::size_t turn) override;

  // partial_norm and whole_norm return the index, among the rank's own buffers, of the number that decides whether an
  // update was right: the squared gradient norm, or without clipping whether a gradient was infinite. partial_norm:
  // over the stages up to this one; whole_norm: over all stages.
  std::uint16_t partial_norm() const { return spec_.strategy.clip > 0 ? kSquaredNorm : kFoundInfinity; }
  std::uint16_t whole_norm() const { return draft_.at_last_stage() ? partial_norm() : std::uint16_t{kWholeNorm}; }
  // Adds the squared norm of the previous stages to this stage's, which the tasks `summed` computed, and sends the sum
  // to the next stage. Returns the tasks that the update must wait for.
  std::vector<TaskId> pass_partial_norm(const std::vector<TaskId>& summed);

 private:
  TaskId pass_number(const char* name, std::uint16_t number, bool send, bool forward);
  void receive_partial_norm();
  void validate_update();

  // for each pipeline stage, the position in its transfer order at which it validates the update
  std::vector<TransferPlace> places_;
};

}  // namespace orrery
