#include "sim/simulate.h"

#include <algorithm>
#include <cassert>

#include "sim/contention.h"
#include "sim/heap.h"

namespace orrery {
namespace {

using Stretch = Contention::Stretch;
constexpr Stretch kUnit = Contention::kAlone;
constexpr TaskId kFetchAhead = 8;  // tasks; best of 4 to 32 on 1.3 M tasks of 64 ranks
constexpr auto kCompute = static_cast<std::uint32_t>(LaneKind::compute);

__extension__ using Wide = unsigned __int128;

// Rounds to nearest; a * b may exceed 64 bits.
Picoseconds scale(Picoseconds a, std::uint64_t b, std::uint64_t c) {
  return static_cast<Picoseconds>((static_cast<Wide>(a) * b + c / 2) / c);
}

// Engine state of a task: 12 bytes beside its span.
struct TaskState {
  std::uint32_t pending = 0;  // dependencies, place in the lane and issue that are still to come
  std::uint32_t next_in_lane = kNone;
  std::uint32_t first_successor = 0;
};

// What a lane is running: nominal time left since `since`, stretched.
struct Run {
  Picoseconds left = 0, since = 0;
  Stretch stretch = kUnit;
  std::uint32_t serial = 0;
  TaskId task = kNone;
};

// A point where a slot's host waits for events before it issues further tasks.
struct Gate {
  TaskId first = 0, end = 0;  // the tasks it then issues
  std::uint32_t pending = 0;
  std::uint32_t slot = 0;
  Picoseconds clock = 0;  // the host came here at
  TaskId cause = kNone;
};

class Engine {
 public:
  Engine(const Plan& plan, const Timing& timing) : plan_(plan), count_(plan.task_count()), contention_(plan, timing) {
    trace_.spans.resize(count_);
    trace_.host.resize(plan.slots.size());
    states_.resize(count_ + 1);
    runs_.resize(plan.slots.size() * kLanes);
    entered_.resize(plan.matches.size(), 0);
    for (const std::uint32_t row : timing.row_of_slot) row_of_slot_.push_back(timing.rows[row].data());
    assert(plan.carried.empty());
    find_gates();
    link();
  }

  Trace run() {
    for (std::size_t g = 0; g < gates_.size(); ++g) {
      if (gates_[g].pending == 0) open(static_cast<std::uint32_t>(g), 0);
    }
    while (next() || contention_.unsettled()) {
      if (contention_.unsettled() && (queue_.empty() || queue_.top().time > now_)) {
        for (const Contention::Change& c : contention_.settle()) restretch(c);
        continue;
      }
      const TimedId e = queue_.top();
      spent_ = true;
      now_ = e.time;
      const Run& run = runs_[plan_.tasks[e.id].lane];
      if (e.serial == 0)
        enter(e.id, e.time);  // it was waiting for its issue
      else if (run.task == e.id && run.serial == e.serial)
        finish(e.id, e.time);
    }
    assert(done_ == count_);
    return std::move(trace_);
  }

 private:
  // Brings the next event to the top. The one before stays there until something is pushed in its place, since most
  // events bring exactly one new one.
  bool next() {
    if (spent_) queue_.pop();
    spent_ = false;
    return !queue_.empty();
  }

  void push(const TimedId& e) {
    if (!spent_) {
      queue_.push(e);
      return;
    }
    spent_ = false;
    queue_.replace_top(e);
  }

  // Every slot's tasks in runs between two host waits.
  void find_gates() {
    for (std::uint32_t s = 0; s < plan_.slots.size(); ++s) {
      const RankSlot& slot = plan_.slots[s];
      gates_.push_back({slot.begin, slot.end, 0, s});
      for (TaskId t = slot.begin; t < slot.end; ++t) {
        if (t == slot.begin || !plan_.op_of(t).host_waits || plan_.dependencies_of(t).empty()) continue;
        gates_.back().end = t;
        gates_.push_back({t, slot.end, 1, s});  // 1: the host must come here
      }
    }
  }

  // Successor lists (dependencies turned round) and lane order. A host wait's dependencies lead to its gate.
  void link() {
    std::vector<std::uint32_t> gate_at(count_, kNone);
    for (std::uint32_t g = 0; g < gates_.size(); ++g) {
      if (gates_[g].pending > 0) gate_at[gates_[g].first] = g;
    }
    for (TaskId t = 0; t < count_; ++t) {
      for (const TaskId before : plan_.dependencies_of(t)) ++states_[before + 1].first_successor;
    }
    for (TaskId t = 0; t < count_; ++t) states_[t + 1].first_successor += states_[t].first_successor;
    successors_.resize(plan_.dependencies.size());
    std::vector<std::uint32_t> fill(count_);
    for (TaskId t = 0; t < count_; ++t) fill[t] = states_[t].first_successor;
    std::vector<TaskId> last(runs_.size(), kNone);
    for (TaskId t = 0; t < count_; ++t) {
      const auto before = plan_.dependencies_of(t);
      states_[t].pending += 1;  // its issue
      if (gate_at[t] == kNone)
        states_[t].pending += static_cast<std::uint32_t>(before.size());
      else
        gates_[gate_at[t]].pending += static_cast<std::uint32_t>(before.size());
      for (const TaskId b : before) successors_[fill[b]++] = gate_at[t] == kNone ? t : count_ + gate_at[t];
      TaskId& previous = last[plan_.tasks[t].lane];
      if (previous != kNone) {
        states_[previous].next_in_lane = t;
        ++states_[t].pending;
      }
      previous = t;
    }
  }

  // The host goes on: it issues tasks one after another until its next wait.
  void open(std::uint32_t g, Picoseconds now) {
    const Gate gate = gates_[g];
    Picoseconds clock = std::max(now, gate.clock);
    trace_.host[gate.slot].push_back({gate.first, clock, gate.cause});
    const OpTiming* row = row_of_slot_[gate.slot];
    for (TaskId t = gate.first; t < gate.end; ++t) {
      clock += row[plan_.tasks[t].op].issue;
      trace_.spans[t].issued = clock;
      if (--states_[t].pending == 0) ready(t, now);
    }
    if (g + 1 < gates_.size() && gates_[g + 1].slot == gate.slot) {
      gates_[g + 1].clock = clock;
      release_gate(g + 1, now, kNone);
    }
  }

  void release_gate(std::uint32_t g, Picoseconds now, TaskId cause) {
    if (cause != kNone) gates_[g].cause = cause;
    if (--gates_[g].pending == 0) open(g, now);
  }

  void ready(TaskId t, Picoseconds now) {
    if (trace_.spans[t].issued > now)
      push({trace_.spans[t].issued, t, 0});
    else
      enter(t, now);
  }

  void enter(TaskId t, Picoseconds now) {
    trace_.spans[t].entered = now;
    const std::uint32_t match = plan_.tasks[t].match;
    if (match == kNone) {
      trace_.spans[t].matched = now;
      begin(t, now);
      return;
    }
    const auto members = plan_.members_of(match);
    if (++entered_[match] < members.size()) return;
    for (const TaskId m : members) trace_.spans[m].matched = now;
    start_run(members.front(), now, contention_.start_transfer(members));
  }

  void begin(TaskId t, Picoseconds now) {
    const bool compute = plan_.tasks[t].lane % kLanes == kCompute;
    start_run(t, now, compute ? contention_.start_compute(t) : contention_.start_transfer({&t, 1}));
  }

  void start_run(TaskId t, Picoseconds now, Stretch stretch) {
    const Task& task = plan_.tasks[t];
    Run& run = runs_[task.lane];
    run.task = t;
    run.left = row_of_slot_[task.lane / kLanes][task.op].duration;
    run.since = now;
    run.stretch = stretch;
    if (stretch != Contention::kUnsettled) schedule(run);
  }

  void schedule(Run& run) {
    const Picoseconds length = run.stretch == kUnit ? run.left : scale(run.left, run.stretch, kUnit);
    push({run.since + length, run.task, ++run.serial});
  }

  // Goes on at another speed from now on.
  void restretch(const Contention::Change& change) {
    Run& run = runs_[plan_.tasks[change.task].lane];
    if (run.stretch == change.stretch) return;
    if (run.stretch != Contention::kUnsettled)
      run.left -= std::min(run.left, scale(now_ - run.since, kUnit, run.stretch));
    run.since = now_;
    run.stretch = change.stretch;
    schedule(run);
  }

  void finish(TaskId t, Picoseconds now) {
    const Task& task = plan_.tasks[t];
    runs_[task.lane].task = kNone;
    if (task.match != kNone) {
      const auto members = plan_.members_of(task.match);
      contention_.stop_transfer(members);
      for (const TaskId m : members) complete(m, now);
      return;
    }
    if (task.lane % kLanes == kCompute)
      contention_.stop_compute(t);
    else
      contention_.stop_transfer({&t, 1});
    complete(t, now);
  }

  // Every slot walks through its tasks in order, too many slots at once for the processor to foresee.
  void fetch_ahead(TaskId t) const {
    const TaskId ahead = std::min(t + kFetchAhead, count_ - 1);
    __builtin_prefetch(&plan_.tasks[ahead]);
    __builtin_prefetch(&states_[ahead], 1);
    __builtin_prefetch(&trace_.spans[ahead], 1);
  }

  void complete(TaskId t, Picoseconds now) {
    ++done_;
    trace_.spans[t].ended = now;
    trace_.step_time = now;  // events come in order
    fetch_ahead(t);
    const TaskState& state = states_[t];
    const std::uint32_t end = states_[t + 1].first_successor;
    for (std::uint32_t i = state.first_successor; i < end; ++i) {
      const TaskId s = successors_[i];
      if (s >= count_)
        release_gate(s - count_, now, t);
      else
        release(s, now, t);
    }
    if (state.next_in_lane != kNone) release(state.next_in_lane, now, t);
  }

  void release(TaskId t, Picoseconds now, TaskId cause) {
    trace_.spans[t].cause = cause;
    if (--states_[t].pending == 0) ready(t, now);
  }

  const Plan& plan_;
  TaskId count_;
  Contention contention_;
  std::vector<const OpTiming*> row_of_slot_;
  Picoseconds now_ = 0;
  TaskId done_ = 0;
  Trace trace_;
  std::vector<TaskState> states_;
  std::vector<TaskId> successors_;
  std::vector<Gate> gates_;
  std::vector<Run> runs_;
  std::vector<std::uint32_t> entered_;
  Heap queue_;
  bool spent_ = false;  // the top event has been dealt with
};

}  // namespace

Trace simulate(const Plan& plan, const Timing& timing) { return Engine(plan, timing).run(); }

}  // namespace orrery
