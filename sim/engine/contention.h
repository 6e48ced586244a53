#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "sim/engine/fair_share.h"
#include "sim/engine/timing.h"

namespace orrery {

// How much longer running tasks take because of each other, as stretches in 1/65536 of their time alone. The class
// knows rates, never times. Four things are shared:
//   multiprocessors   a transfer's channels take theirs from compute of the same rank: stretch 1 + pressure
//   the core          of a CPU rank: a transfer yields to compute of the same rank: stretch 1 + yield
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

  // A transfer starts at all its ends, `members` of one match or one task; the first one stands for it.
  Stretch start_transfer(std::span<const TaskId> members);
  void stop_transfer(std::span<const TaskId> members);

  // Whether starts and stops since the last settle() may have changed the speed of other tasks. All starts and stops at
  // one moment are settled at once.
  bool unsettled() const { return !dirty_.empty() || share_.stale(); }
  const std::vector<Change>& settle();

 private:
  struct Rank {
    std::uint32_t pressure = 0;  // pressure of the transfers on the rank
    std::uint32_t memory = 0;    // memory bandwidth that all tasks on the rank want, 1/65536
    std::uint32_t lanes = 0;     // lanes with a running transfer, as bits
    std::uint32_t yielding = 0;  // running transfers that compute slows
    TaskId compute = kNone;
    bool dirty = false;

    bool busy() const { return lanes != 0 || compute != kNone; }
    Stretch crowding() const { return std::max(kAlone, memory); }
  };

  // One end of a transfer that runs on this lane, or ran last.
  struct End {
    TaskId task = kNone;
    Stretch stretch = kAlone;  // stretch of the transfer at this end
    FlowId flow = kNone;
    bool listed = false;  // listed as changed; used in the first member
    Rate limit = 0;       // limit of the flow
  };

  const OpTiming& timing_of(TaskId t) const { return rows_[plan_.tasks[t].lane / kLanes][plan_.tasks[t].op]; }
  bool on_contested_link(TaskId end) const;
  void start_flow(TaskId task, End& end);
  void touch(std::uint32_t slot);
  // More, or less, of the rank's memory bandwidth is wanted. Beyond the whole bandwidth, that changes the speed of the
  // other tasks on the rank.
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
  std::vector<const OpTiming*> rows_;  // timing rows, by slot
  std::vector<Rank> ranks_;
  std::vector<End> ends_;  // ends of transfers, by lane
  std::vector<std::uint32_t> dirty_;
  FairShare share_;
  std::vector<std::uint32_t> lane_of_flow_;
  std::vector<Change> changes_;
};

}  // namespace orrery
