#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "sim/engine/fair_share.h"
#include "sim/engine/stretch.h"
#include "sim/engine/timing.h"

namespace orrery {

// The slow-down of running tasks by each other, as a stretch: the time that a task takes now over the time that the
// task takes alone, in units of 1/65536. The class knows rates, never times. Tasks share four resources:
//   multiprocessors   a transfer's channels occupy some that compute of the same rank would use: compute's stretch is 1
//                     + pressure
//   a CPU's core      where ranks are CPUs, a transfer yields to compute of the same rank: the transfer's stretch is 1
//                     + yield
//   device memory     if compute and transfers of a rank together want more than its bandwidth, all have the same
//                     stretch
//   NICs, NVLink and uplinks
//                     transfers on a link get max-min fair shares; a transfer is as fast as its slowest rank
//
// The transfers that one crowded link alone slows may be put on a clock (Clocks): as long as they stay there, a change
// of their speed is told once, as one of the clock's. A link has a clock for all of its flows that have one limit.
class Contention {
 public:
  using Stretch = Stretched::Speed;
  static constexpr Stretch kAlone = Stretched::kAlone;
  // Placeholder for the stretch of a task (its time now over its time alone) until settle() has computed it.
  static constexpr Stretch kUnsettled = 0;

  struct Change {
    TaskId task = kNone;  // a compute task, or the first of the tasks (one per rank) that make a transfer
    Stretch stretch = kAlone;
    std::uint32_t clock = kNone;  // the clock that the task is on from now on, kNone if it is on none
  };
  struct ClockChange {
    std::uint32_t clock = kNone;
    Stretch stretch = kAlone;  // of all tasks that are on the clock
  };

  static constexpr std::size_t kNoClocks = SIZE_MAX;
  // least_on_clock: number of flows of a link from which on it may have clocks.
  Contention(const Plan& plan, const Timing& timing, std::size_t least_on_clock = kNoClocks);

  // Must be called when a compute task starts. Returns the task's stretch (time now over time alone) until the next
  // settle().
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

  // Must be called when a transfer starts on all its ranks. members: the transfer's tasks, one per rank, of which the
  // first stands for the transfer. Returns the transfer's stretch (time now over time alone) until the next settle().
  Stretch start_transfer(std::span<const TaskId> members);
  void stop_transfer(std::span<const TaskId> members);

  // Returns whether tasks have started or stopped since the last settle(), so that the speed of other tasks may have
  // changed. One call of settle() handles all starts and stops at one moment of simulated time.
  bool unsettled() const { return !dirty_.empty() || share_.stale(); }
  // Returns the tasks whose speed, or whose clock, may have changed, other than by a change of their clock's speed.
  const std::vector<Change>& settle();
  // Returns the clocks whose speed has changed with the last settle(): for tasks that were on a clock before it and are
  // not among its changes, and for those that it has put on a clock.
  const std::vector<ClockChange>& clock_changes() const { return clock_changes_; }

 private:
  struct Rank {
    // slow-down of the rank's compute: sum of OpTiming::pressure over the rank's running transfers
    std::uint32_t pressure = 0;
    // sum of the shares of the rank's memory bandwidth that its running tasks would use, in 1/65536
    std::uint32_t memory = 0;
    std::uint32_t lanes = 0;     // bit mask: a bit for each lane (stream) of the rank in which a transfer runs
    std::uint32_t yielding = 0;  // number of running transfers that are slowed when the rank computes
    TaskId compute = kNone;
    bool dirty = false;

    bool busy() const { return lanes != 0 || compute != kNone; }
    Stretch crowding() const { return std::max(kAlone, memory); }
  };

  // The part that one rank has in a transfer: the transfer that runs in one of the rank's lanes (streams), or that ran
  // there last.
  struct Endpoint {
    TaskId task = kNone;
    Stretch stretch = kAlone;  // how this rank slows the transfer: time now over time alone
    FlowId flow = kNone;
    // whether the transfer is in changes_, the list of tasks whose speed may have changed; set for its first member
    // only
    bool listed = false;
    Rate limit = 0;               // rate of the flow if no other flow shares its links
    std::uint32_t clock = kNone;  // the clock that the transfer is on because of this rank
  };

  // A clock for the transfers whose flows a link holds and have one limit.
  struct LinkClock {
    LinkId link = 0;
    Rate limit = 0;
    Stretch stretch = kUnsettled;
    Stretch floor = kAlone;      // how much other ranks may slow a transfer that is on the clock, at most
    std::uint32_t on = 0;        // number of transfers on the clock
    std::uint32_t next = kNone;  // another clock of the link
  };

  const OpTiming& timing_of(TaskId t) const { return rows_[plan_.tasks[t].lane / kLanes][plan_.tasks[t].op]; }
  bool on_contested_link(TaskId end) const;
  void start_flow(TaskId task, Endpoint& end);
  void touch(std::uint32_t slot);
  // Adds `memory` to the share of the memory bandwidth that the running tasks of a rank would use together. If the sum
  // is more than there is, the speed of all tasks of the rank changes.
  void load(std::uint32_t slot, std::uint32_t memory) {
    Rank& rank = ranks_[slot];
    const Stretch before = rank.crowding();
    rank.memory += memory;
    if (rank.crowding() != before && rank.busy()) touch(slot);
  }
  void press(std::uint32_t slot, std::uint32_t pressure);
  Stretch compute_stretch(const Rank& rank) const;
  Stretch end_stretch(const Endpoint& end, const Rank& rank) const;
  void list(std::uint32_t lane);
  void list_if_changed(std::uint32_t lane);
  void relevel(LinkId link);
  void list_all_on(std::uint32_t clock);
  void find_speed(Change& change);
  void take_off_clock(Endpoint& end);
  void put_on_clock(Change& change, std::span<const TaskId> members);
  std::uint32_t clock_of(LinkId link, Rate limit);
  std::span<const TaskId> members_of(const TaskId& lead) const;
  TaskId lead_of(TaskId end) const;

  const Plan& plan_;
  const Timing& timing_;
  std::vector<const OpTiming*> rows_;  // for each class of ranks, the times of every op
  std::vector<Rank> ranks_;
  std::vector<Endpoint> ends_;  // for each lane (stream), its rank's part in the transfer that runs in it
  std::vector<std::uint32_t> dirty_;
  FairShare share_;
  std::vector<std::uint32_t> lane_of_flow_;
  std::vector<Change> changes_;
  std::size_t least_on_clock_;
  std::vector<LinkClock> clocks_;
  std::vector<std::uint32_t> clocks_of_link_;  // for each link, its first clock; empty while no link has one
  std::vector<ClockChange> clock_changes_;
};

}  // namespace orrery
