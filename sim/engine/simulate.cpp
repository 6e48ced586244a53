#include "sim/engine/simulate.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "models/base/error.h"
#include "sim/engine/clocks.h"
#include "sim/engine/contention.h"
#include "sim/engine/event_queue.h"
#include "sim/engine/huge_pages.h"
#include "sim/engine/kernel_queues.h"
#include "sim/engine/stretch.h"

namespace orrery {
namespace {

using Stretch = Contention::Stretch;
constexpr std::uint32_t kIssued = 0;  // serial number of events that mark the moment when a host has issued a task
// The number of event times that the engine handles between two reads of the flag `stop`, which are some milliseconds
// apart.
constexpr std::uint32_t kTurnsToLook = 1U << 14;
// How many tasks ahead of the current one the engine prefetches task data into the CPU cache. With 1.3 million tasks of
// 64 ranks, values from 6 to 24 are equally fast.
constexpr TaskId kFetchAhead = 8;
// Number of flows of a link from which on the engine follows them by a clock. With 256 workers of different speeds
// whose transfers meet at servers (engine_servers of benchmarks/engine_benchmark.cpp), values from 4 to 64 are about
// equally fast; with fewer flows, there is little to be gained.
constexpr std::size_t kLeastOnClock = 16;
constexpr auto kCompute = static_cast<std::uint32_t>(LaneKind::compute);

// A lane (stream) or a host thread that waits until the dependencies of a task have ended. It waits for one dependency
// at a time, the last in the task's list first.
struct Waiter {
  TaskId awaited = kNone;
  std::uint32_t dependency = 0;  // index of the awaited task in Plan::dependencies
  std::uint32_t next = kNone;    // index of the next Waiter in the list of those that wait for tasks of one lane
};

// A lane is an in-order queue, as a CUDA stream is. Its first task (head) runs, or waits to run; when it ends is a
// matter of Clocks.
struct LaneState {
  TaskId head = kNone;
  // index of the first Waiter (a lane or a host) in the list of those that wait for tasks of this lane
  std::uint32_t waiters = kNone;
  bool unissued = false;  // whether the lane's first task waits only for its host to issue it
};

// The host thread of a class of ranks. It issues the tasks of these ranks in order, up to a task before which it must
// wait for other tasks to end. The issue times up to that task depend on nothing else, so each is computed only when
// its task becomes the first of its lane (stream), because then the task's data is still in the cache.
struct HostThread {
  const OpTiming* row = nullptr;  // times of every op on the ranks of the class
  TaskId next = 0;                // the next task to be issued
  // The next task before which the host waits for other tasks to end; if there is none, the end of the class's tasks.
  TaskId wait = 0;
  Picoseconds clock = 0;
  // the tasks after `wait` before which the host also waits for other tasks, in reverse order of issue
  std::vector<TaskId> waits;
};

class Engine {
 public:
  Engine(const Plan& plan, const Timing& timing)
      : plan_(plan),
        count_(plan.task_count()),
        lane_count_(static_cast<std::uint32_t>(plan.classes.size()) * kLanes),
        contention_(plan, timing, kLeastOnClock),
        queues_(plan, timing.one_queue),
        clocks_(lane_count_),
        lanes_(lane_count_),
        waiters_(lane_count_ + plan.classes.size()),
        next_in_lane_(std::make_unique_for_overwrite<TaskId[]>(count_)),
        ended_(count_),
        entered_(plan.matches.size()) {
    trace_.spans.reserve(count_);
    prefer_huge_pages(trace_.spans.data(), count_ * sizeof(Span));
    prefer_huge_pages(next_in_lane_.get(), count_ * sizeof(TaskId));
    trace_.spans.resize(count_);
    trace_.host.resize(plan.classes.size());
    for (std::uint32_t s = 0; s < plan.classes.size(); ++s)
      hosts_.push_back(
          {timing.rows[timing.row_of_slot[s]].data(), plan.classes[s].begin, plan.classes[s].begin, 0, {}});
    line_up();
  }

  PartTrace run(Picoseconds latest, const std::atomic<bool>* stop) {
    for (std::uint32_t lane = 0; lane < lane_count_; ++lane) {
      if (lanes_[lane].head != kNone) come_up(lane, kNone);
    }
    for (std::uint32_t s = 0; s < hosts_.size(); ++s) resume(s, kNone);
    for (std::uint32_t turn = 1;; ++turn) {
      if (turn % kTurnsToLook == 0 && stop != nullptr && *stop) throw Stopped();
      while (clocks_.queue().due()) handle(clocks_.queue().take());
      if (contention_.unsettled()) {
        settle();
      } else if (!clocks_.advance()) {
        break;
      }
      // A task may end earlier than was first computed, which leaves an outdated event of the task in the queue. The
      // clock may so pass `latest` although all tasks have ended; the step is late only if tasks remain.
      if (now() > latest && done_ < count_) return {std::move(trace_), true};
    }
    // A deadlock can occur only in a plan on which check_plan() was not called, because check_plan() refuses plans that
    // deadlock.
    if (done_ < count_) throw Error("plan: deadlock: its tasks wait for each other in a circle");
    return {std::move(trace_), false};
  }

 private:
  std::uint32_t lane_of(TaskId t) const { return plan_.tasks[t].lane; }
  Picoseconds now() const { return clocks_.now(); }

  // Puts the tasks of every lane (stream) in issue order, and lists the tasks before which host threads wait for other
  // tasks.
  void line_up() {
    for (const Op& op : plan_.ops) op_waits_.push_back(op.host_waits);
    for (std::uint32_t s = 0; s < hosts_.size(); ++s) {
      for (TaskId t = plan_.classes[s].end; t-- > plan_.classes[s].begin;) {
        TaskId& head = lanes_[lane_of(t)].head;
        next_in_lane_[t] = head;
        head = t;
        if (held_by_host(t)) hosts_[s].waits.push_back(t);
      }
    }
  }

  void handle(EventQueue::Event e) {
    if (e.id == Clocks<Stretched>::kWake) return;
    if (e.serial == kIssued)
      arrive(e.id);
    else if (clocks_.ended(lane_of(e.id), e))
      finish(e.id);
  }

  // Returns whether the host waits for the dependencies of task t and issues t only after they have ended; if not, the
  // lane (stream) of the task waits for them.
  bool held_by_host(TaskId t) const {
    return op_waits_[plan_.tasks[t].op] && !plan_.dependencies_of(t).empty() &&
           t != plan_.classes[plan_.slot_of(t)].begin;
  }

  // Lets the host of the ranks of class `slot` issue its tasks up to the next one before which it has to wait for tasks
  // that have not ended.
  void resume(std::uint32_t slot, TaskId cause) {
    HostThread& host = hosts_[slot];
    const TaskId end = plan_.classes[slot].end;
    for (;;) {
      issue(host, host.wait);
      host.clock = std::max(host.clock, now());
      trace_.host[slot].push_back({host.next, host.clock, cause});
      host.wait = end;
      if (!host.waits.empty()) {
        host.wait = host.waits.back();
        host.waits.pop_back();
      }
      launch_heads(slot);
      if (host.wait == end || !await(lane_count_ + slot, host.wait, dependencies_end(host.wait))) return;
      cause = last_ended(plan_.dependencies_of(host.wait));
    }
  }

  void issue(HostThread& host, TaskId end) {
    for (; host.next < end; ++host.next) {
      host.clock += host.row[plan_.tasks[host.next].op].issue;
      trace_.spans[host.next].issued = host.clock;
    }
  }

  void launch_heads(std::uint32_t slot) {
    for (std::uint32_t lane = slot * kLanes; lane < (slot + 1) * kLanes; ++lane) {
      if (!lanes_[lane].unissued || lanes_[lane].head >= hosts_[slot].wait) continue;
      lanes_[lane].unissued = false;
      launch(lanes_[lane].head);
    }
  }

  TaskId last_ended(std::span<const TaskId> tasks) const {
    return *std::max_element(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
      return std::pair(trace_.spans[a].ended, a) < std::pair(trace_.spans[b].ended, b);
    });
  }

  // Must be called when a task has become the first of its lane (stream).
  void come_up(std::uint32_t lane, TaskId cause) {
    const TaskId t = lanes_[lane].head;
    if (held_by_host(t) || await(lane, t, dependencies_end(t))) ready(lane, cause);
  }

  std::uint32_t dependencies_end(TaskId t) const { return plan_.tasks[t + 1].first_dependency; }

  // Returns whether the dependencies of task t before index `end` have ended. If not, the waiter (a lane or a host
  // thread) is listed to wait for the last of the dependencies that have not ended; go_on() then looks at earlier ones.
  bool await(std::uint32_t waiter, TaskId t, std::uint32_t end) {
    for (std::uint32_t i = end; i > plan_.tasks[t].first_dependency; --i) {
      const TaskId before = plan_.dependencies[i - 1];
      if (ended_[before]) continue;
      std::uint32_t* place = &lanes_[lane_of(before)].waiters;
      while (*place != kNone && waiters_[*place].awaited < before) place = &waiters_[*place].next;
      waiters_[waiter] = {before, i - 1, *place};
      *place = waiter;
      return false;
    }
    return true;
  }

  void wake(LaneState& lane, TaskId ended) {
    while (lane.waiters != kNone && waiters_[lane.waiters].awaited == ended) {
      const std::uint32_t waiter = lane.waiters;
      lane.waiters = waiters_[waiter].next;
      go_on(waiter, ended);
    }
  }

  void go_on(std::uint32_t waiter, TaskId cause) {
    const bool host = waiter >= lane_count_;
    const TaskId t = host ? hosts_[waiter - lane_count_].wait : lanes_[waiter].head;
    if (!await(waiter, t, waiters_[waiter].dependency)) return;
    if (host)
      resume(waiter - lane_count_, cause);
    else
      ready(waiter, cause);
  }

  void ready(std::uint32_t lane, TaskId cause) {
    const TaskId t = lanes_[lane].head;
    trace_.spans[t].cause = cause;
    if (t < hosts_[lane / kLanes].wait)
      launch(t);
    else
      lanes_[lane].unissued = true;
  }

  void launch(TaskId t) {
    issue(hosts_[plan_.slot_of(t)], t + 1);
    if (trace_.spans[t].issued > now())
      clocks_.queue().push(trace_.spans[t].issued, {t, kIssued});
    else
      arrive(t);
  }

  // Must be called when the host has issued a task and the task's dependencies have ended. With one queue for all
  // kernels of a rank, a kernel is held back until the kernels launched before it begin; host copies and receives are
  // not held back (KernelQueues).
  void arrive(TaskId t) {
    if (!queues_.must_queue(t)) return enter(t);
    queues_.arrive(t, [&](TaskId next) {
      if (next != t) trace_.spans[next].cause = trace_.spans[t].cause;
      enter(next);
    });
  }

  void enter(TaskId t) {
    trace_.spans[t].entered = now();
    const Task& task = plan_.tasks[t];
    if (task.match == kNone) {
      trace_.spans[t].matched = now();
      const bool compute = task.lane % kLanes == kCompute;
      start_run(t, compute ? contention_.start_compute(t) : contention_.start_transfer({&t, 1}));
      return;
    }
    const auto members = plan_.members_of(task.match);
    if (++entered_[task.match] < members.size()) return;
    for (const TaskId m : members) trace_.spans[m].matched = now();
    start_run(members.front(), contention_.start_transfer(members));
  }

  void start_run(TaskId t, Stretch stretch) {
    const Task& task = plan_.tasks[t];
    clocks_.start(task.lane, t, hosts_[task.lane / kLanes].row[task.op].duration, stretch);
  }

  // Lets running tasks go on at the speeds that they have now. A task that leaves a clock does so before the clock's
  // speed changes: if it is as fast as it was on the clock, it goes on as if nothing had changed.
  void settle() {
    const std::vector<Contention::Change>& changes = contention_.settle();
    bool hang = false;
    for (const Contention::Change& c : changes) {
      if (c.clock == kNone) {
        clocks_.run(lane_of(c.task), c.stretch);
      } else {
        hang = true;
        clocks_.leave(lane_of(c.task));
      }
    }
    for (const Contention::ClockChange& c : contention_.clock_changes()) clocks_.set_speed(c.clock, c.stretch);
    if (!hang) return;
    for (const Contention::Change& c : changes) {
      if (c.clock != kNone) clocks_.hang(lane_of(c.task), c.clock);
    }
  }

  void finish(TaskId t) {
    const Task& task = plan_.tasks[t];
    if (task.match != kNone) {
      const auto members = plan_.members_of(task.match);
      contention_.stop_transfer(members);
      for (const TaskId m : members) complete(m);
      return;
    }
    if (task.lane % kLanes == kCompute)
      contention_.stop_compute(t);
    else
      contention_.stop_transfer({&t, 1});
    complete(t);
  }

  // Prefetches the data of later tasks into the cache. The engine visits the tasks of each class of ranks in order, but
  // there are too many classes for the processor's own prefetching.
  void fetch_ahead(TaskId t) const {
    const TaskId ahead = std::min(t + kFetchAhead, count_ - 1);
    __builtin_prefetch(&plan_.tasks[ahead]);
    __builtin_prefetch(&trace_.spans[ahead], 1);
    __builtin_prefetch(&next_in_lane_[ahead]);
  }

  void complete(TaskId t) {
    fetch_ahead(t);
    ++done_;
    trace_.spans[t].ended = now();
    trace_.step_time = now();  // every task overwrites it, so the last one's end remains
    ended_[t] = true;
    const std::uint32_t lane = lane_of(t);
    lanes_[lane].head = next_in_lane_[t];
    wake(lanes_[lane], t);
    if (lanes_[lane].head != kNone) come_up(lane, t);
  }

  const Plan& plan_;
  TaskId count_;
  std::uint32_t lane_count_;
  Contention contention_;
  KernelQueues queues_;
  Clocks<Stretched> clocks_;
  TaskId done_ = 0;
  Trace trace_;
  std::vector<char> op_waits_;  // for each op, whether the host waits for dependencies before it issues tasks of the op
  std::vector<HostThread> hosts_;  // for each class of ranks, its host thread
  std::vector<LaneState> lanes_;
  std::vector<Waiter> waiters_;  // one Waiter for each lane (for its first task), then one for each host thread
  std::unique_ptr<TaskId[]> next_in_lane_;
  std::vector<bool> ended_;
  // for each match (the plan's record of the tasks of one transfer), the number of ranks that have entered it
  std::vector<std::uint32_t> entered_;
};

}  // namespace

Trace simulate(const Plan& plan, const Timing& timing, const std::atomic<bool>* stop) {
  return Engine(plan, timing).run(std::numeric_limits<Picoseconds>::max(), stop).trace;
}

PartTrace simulate_until(const Plan& plan, const Timing& timing, Picoseconds latest, const std::atomic<bool>* stop) {
  return Engine(plan, timing).run(latest, stop);
}

}  // namespace orrery
