#pragma once

#include <cstdint>
#include <vector>

#include "models/plan.h"
#include "sim/fair_share.h"
#include "sim/timing.h"

namespace orrery {

// Transfers on shared links: every end of a running transfer is a flow on its own rank's ports, and the transfer goes
// as fast as its slowest end. It knows rates, never times.
class Flows {
 public:
  Flows(const Plan& plan, const Timing& timing);

  // Whether an op's transfers cross a contested link; others run at full speed and are never passed in.
  bool shared(std::uint32_t slot, std::uint32_t op) const;

  void start(TaskId end_of_transfer);
  void stop(TaskId end_of_transfer);

  // Whether starts or stops since the last settle() may have changed rates.
  bool unsettled() const { return unsettled_; }

  // Recomputes rates and calls on_change(task) for every running end whose rate is new.
  template <typename OnChange>
  void settle(const OnChange& on_change) {
    unsettled_ = false;
    for (const FlowId f : share_.update()) on_change(task_of_[f]);
  }

  // How much longer than alone an end takes now, in 1/65536; at least 65536.
  std::uint32_t stretch(TaskId end_of_transfer) const;

 private:
  const Plan& plan_;
  const Timing& timing_;
  FairShare share_;
  std::vector<TaskId> task_of_;  // by flow
  std::vector<FlowId> flow_of_lane_;
  std::vector<Rate> limit_of_lane_;
  bool unsettled_ = false;
};

}  // namespace orrery
