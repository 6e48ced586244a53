#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/plan.h"
#include "sim/fair_share.h"
#include "sim/timing.h"

namespace orrery {

// How much longer running tasks take because of each other, as stretches in 1/65536 of their time alone. It knows
// rates, never times. Three things are shared:
//   multiprocessors   a transfer's channels take theirs from compute of the same rank: stretch 1 + pressure
//   device memory     compute and transfers of a rank that together want more than its bandwidth stretch alike
//   NICs and NVLink   max-min fair among the transfers on a port; a transfer goes as fast as its slowest end
class Contention {
 public:
  using Stretch = std::uint32_t;
  static constexpr Stretch kAlone = 65536;
  static constexpr Stretch kUnsettled = 0;  // not known before settle()

  struct Change {
    TaskId task = kNone;  // a compute task, or the first member of a transfer
    Stretch stretch = kAlone;
  };

  Contention(const Plan& plan, const Timing& timing);

  // A compute task starts. Returns its stretch until the next settle().
  Stretch start_compute(TaskId task) {
    const std::uint32_t slot = plan_.tasks[task].lane / kLanes;
    ranks_[slot].compute = task;
    return ranks_[slot].lanes == 0 ? kAlone : crowd_in(slot);
  }
  void stop_compute(TaskId task) {
    const std::uint32_t slot = plan_.tasks[task].lane / kLanes;
    ranks_[slot].compute = kNone;
    if (ranks_[slot].lanes != 0) touch(slot);
  }

  // A transfer starts at all its ends, `members` of one match or one task; the first one stands for it.
  Stretch start_transfer(std::span<const TaskId> members);
  void stop_transfer(std::span<const TaskId> members);

  // Whether starts and stops since the last settle() may have changed what others run at. What starts or stops at one
  // time is settled once.
  bool unsettled() const { return unsettled_; }
  const std::vector<Change>& settle();

 private:
  struct Rank {
    std::uint32_t pressure = 0;         // of the transfers on it
    std::uint32_t transfer_memory = 0;  // bandwidth they want, 1/65536
    std::uint32_t lanes = 0;            // with a running transfer, as bits
    TaskId compute = kNone;
    bool dirty = false;
  };

  const OpTiming& timing_of(TaskId t) const { return rows_[plan_.tasks[t].lane / kLanes][plan_.tasks[t].op]; }
  bool on_contested_link(TaskId end) const;
  void start_flow(TaskId end);
  void touch(std::uint32_t slot);
  Stretch crowd_in(std::uint32_t slot);  // compute that starts beside transfers
  Stretch crowding(const Rank& rank) const;
  Stretch transfer_stretch(TaskId lead) const;
  Stretch end_stretch(TaskId end) const;
  void look_at(TaskId end);
  TaskId lead_of(TaskId end) const;

  const Plan& plan_;
  const Timing& timing_;
  std::vector<const OpTiming*> rows_;  // by slot
  std::vector<Rank> ranks_;
  // By lane, of running transfers: the end there, how far it is held up, and the settle() that looked at its lead last.
  std::vector<TaskId> end_in_lane_;
  std::vector<Stretch> stretch_in_lane_;
  std::vector<std::uint64_t> seen_in_lane_;
  std::uint64_t settles_ = 0;
  std::vector<std::uint32_t> dirty_;
  FairShare share_;
  std::vector<TaskId> end_of_flow_;
  std::vector<FlowId> flow_in_lane_;
  std::vector<Rate> limit_in_lane_;
  bool unsettled_ = false;
  std::vector<Change> changes_;
};

}  // namespace orrery
