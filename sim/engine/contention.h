#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "sim/engine/fair_share.h"
#include "sim/engine/timing.h"

namespace orrery {

// How much longer running tasks take because of each other: stretches, factors in 1/65536 of the time that the task
// takes alone. The class knows rates, never times. Four things are shared:
//   multiprocessors   a transfer's channels take some from compute of the same rank: stretch 1 + pressure
//   the core          of a CPU rank: a transfer yields to compute of the same rank: stretch 1 + yield
//   device memory     compute and transfers of a rank that together want more than its bandwidth stretch alike
//   NICs and NVLink   max-min fair among the transfers on a port; a transfer goes as fast as its slowest end
class Contention {
 public:
  using Stretch = std::uint32_t;
  static constexpr Stretch kAlone = 65536;
  static constexpr Stretch kUnsettled = 0;  // not computed before settle()

  struct Change {
    TaskId task = kNone;  // a compute task, or the first member of a transfer
    Stretch stretch = kAlone;
  };

  Contention(const Plan& plan, const Timing& timing);

  // A compute task starts. Returns its stretch until the next settle().
  Stretch start_compute(TaskId task) {
    const std::uint32_t slot = plan_.tasks[task].lane / kLanes;
    Rank& rank = ranks_[slot];
    load(slot, timing_of(task).memory);
    rank.compute = task;
    if (rank.yielding != 0) touch(slot);
    return rank.lanes == 0 ? kAlone : compute_stretch(rank);
  }
  void stop_compute(TaskId task) {
    const std::uint32_t slot = plan_.tasks[task].lane / kLanes;
    ranks_[slot].compute = kNone;
    if (ranks_[slot].yielding != 0) touch(slot);
    load(slot, -timing_of(task).memory);
  }

  // A transfer starts at all its ends: `members` are the tasks of its ranks; the first one stands for the transfer.
  Stretch start_transfer(std::span<const TaskId> members);
  void stop_transfer(std::span<const TaskId> members);

  // Whether tasks that started or stopped since the last settle() may have changed the speed of other tasks. All starts
  // and stops at one moment are settled at once.
  bool unsettled() const { return !dirty_.empty() || share_.stale(); }
  const std::vector<Change>& settle();

 private:
  struct Rank {
    std::uint32_t pressure = 0;  // pressure of the transfers on the rank
    std::uint32_t memory = 0;    // memory bandwidth that all tasks on the rank want, 1/65536
    std::uint32_t lanes = 0;     // lanes (streams) with a running transfer, as bits
    std::uint32_t yielding = 0;  // number of running transfers that compute of the rank slows
    TaskId compute = kNone;
    bool dirty = false;

    bool busy() const { return lanes != 0 || compute != kNone; }
    Stretch crowding() const { return std::max(kAlone, memory); }
  };

  // One rank's end of the transfer that runs in a lane (stream), or ran there last.
  struct End {
    TaskId task = kNone;
    Stretch stretch = kAlone;  // slowdown (stretch) of the transfer at this end
    FlowId flow = kNone;
    bool listed = false;  // whether the transfer is already listed as changed; used in its first member only
    Rate limit = 0;       // highest rate of the flow
  };

  const OpTiming& timing_of(TaskId t) const { return rows_[plan_.tasks[t].lane / kLanes][plan_.tasks[t].op]; }
  bool on_contested_link(TaskId end) const;
  void start_flow(TaskId task, End& end);
  void touch(std::uint32_t slot);
  // Adds to the memory bandwidth that the tasks of a rank want. Where they want more than all of it, the speed of the
  // other tasks on the rank changes.
  void load(std::uint32_t slot, std::uint32_t memory) {
    Rank& rank = ranks_[slot];
    const Stretch before = rank.crowding();
    rank.memory += memory;
    if (rank.crowding() != before && rank.busy()) touch(slot);
  }
  void press(std::uint32_t slot, std::uint32_t pressure);
  Stretch compute_stretch(const Rank& rank) const;
  Stretch transfer_stretch(TaskId lead) const;
  Stretch end_stretch(const End& end, const Rank& rank) const;
  void look_at(std::uint32_t lane);
  TaskId lead_of(TaskId end) const;

  const Plan& plan_;
  const Timing& timing_;
  std::vector<const OpTiming*> rows_;  // timing rows (times of every op), by class of ranks
  std::vector<Rank> ranks_;
  std::vector<End> ends_;  // ends of transfers, by the lane that they run in
  std::vector<std::uint32_t> dirty_;
  FairShare share_;
  std::vector<std::uint32_t> lane_of_flow_;
  std::vector<Change> changes_;
};

}  // namespace orrery
