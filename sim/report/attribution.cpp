#include "sim/report/attribution.h"

#include <algorithm>

namespace orrery {
namespace {

TimeKind busy_kind(const Op& op) {
  return op.optimizer ? TimeKind::optimizer : op.recompute ? TimeKind::recompute : TimeKind::compute;
}

class Walker {
 public:
  Walker(const Plan& plan, const Trace& trace, Period period) : plan_(plan), trace_(trace), period_(period) {
    result_.by_slot.resize(plan.classes.size());
    result_.second_by_slot.resize(plan.classes.size());
    result_.exposed_by_op.resize(plan.ops.size(), 0);
    two_models_ = std::any_of(plan.blocks.begin(), plan.blocks.end(), [](const Block& b) { return b.second; });
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      if (last_ == kNone || trace.spans[t].ended > trace.spans[last_].ended) last_ = t;
    }
  }

  Attribution run() {
    for (slot_ = 0; slot_ < plan_.classes.size(); ++slot_) {
      Picoseconds busy_until = 0;
      for (TaskId t = plan_.classes[slot_].begin; t < plan_.classes[slot_].end; ++t) {
        if (plan_.op_of(t).lane != LaneKind::compute) continue;
        const Span& span = trace_.spans[t];
        const bool of_second = two_models_ && plan_.blocks[plan_.frames[plan_.tasks[t].frame].block].second;
        second_ = plan_.classes[slot_].second || of_second;
        from_ = busy_until;
        if (span.entered > from_) why(t, span.entered);
        busy_until = std::max(from_, span.ended);
        charge(busy_kind(plan_.op_of(t)), std::max(from_, span.entered), busy_until);
      }
      second_ = plan_.classes[slot_].second;
      from_ = busy_until;
      if (last_ != kNone && trace_.step_time > from_) met(last_, trace_.step_time);
    }
    return std::move(result_);
  }

 private:
  // Adds the time from `begin` to `end`, as far as it lies within the reported step, to the given kind of time; returns
  // the time added.
  Picoseconds charge(TimeKind kind, Picoseconds begin, Picoseconds end) {
    const Picoseconds time = std::max<Picoseconds>(0, std::min(end, period_.end) - std::max(begin, period_.begin));
    result_.by_slot[slot_][static_cast<std::size_t>(kind)] += time;
    if (second_) result_.second_by_slot[slot_][static_cast<std::size_t>(kind)] += time;
    return time;
  }

  // On a real device a task begins a little after all that it waits for is ready. Charges this delay, up to `until`, as
  // launch time, and returns the time at which the delay begins.
  Picoseconds charge_delay(Picoseconds ready, Picoseconds until) {
    const Picoseconds since = std::max(from_, ready);
    if (since >= until) return until;
    charge(TimeKind::launch, since, until);
    return since;
  }

  // Explains why the compute lane was idle from the time from_ to the time `until`, when task t entered the lane.
  // Charges the idle time to the tasks and launches that t waited for.
  void why(TaskId t, Picoseconds until) {
    while (until > from_) {
      const Span& span = trace_.spans[t];
      TaskId cause = span.cause;
      const Picoseconds freed = cause == kNone ? 0 : trace_.spans[cause].ended;
      until = charge_delay(std::max(span.issued, freed), until);
      if (until <= from_) return;
      if (span.issued >= until && freed < until) {
        const HostResume& host = waited_at(t);
        const Picoseconds since = std::max(from_, std::max(freed, host.time));
        charge(TimeKind::launch, since, until);
        until = since;
        if (host.time >= freed) cause = host.cause;
      }
      if (until <= from_) return;
      if (cause == kNone) break;
      const auto [next, time] = through(cause, until);
      if (next == kNone) return;
      t = next;
      until = time;
    }
    if (until > from_) charge(TimeKind::other, from_, until);
  }

  void met(TaskId t, Picoseconds until) {
    const auto [next, time] = through(t, until);
    if (next != kNone) why(next, time);
  }

  struct Step {
    TaskId task = kNone;
    Picoseconds until = 0;
  };

  // Charges the last part of an idle gap, up to `until`, to the task `busy`, which ran during it. Returns the task
  // whose waiting explains the rest of the gap, if any is left.
  Step through(TaskId busy, Picoseconds until) {
    const Op& op = plan_.op_of(busy);
    const Span& span = trace_.spans[busy];
    const std::uint32_t other = plan_.slot_of(busy);
    until = charge_delay(span.ended, until);
    if (op.lane == LaneKind::compute) {
      if (other != slot_) {
        const bool same_stage = plan_.classes[other].stage == plan_.classes[slot_].stage;
        charge(same_stage ? TimeKind::imbalance : TimeKind::bubble, from_, until);
        return {};
      }
      return {busy, std::min(until, span.entered)};
    }
    const Picoseconds since = std::min(until, std::max(from_, span.matched));
    const Picoseconds exposed = charge(exposed_kind(op.lane), since, until);
    if (!plan_.classes[slot_].server)
      result_.exposed_by_op[plan_.tasks[busy].op] += exposed * plan_.classes[slot_].multiplicity;
    return {last_member(busy), since};
  }

  // Returns, of the tasks of one transfer (one per rank), the task that entered its lane last: the other ranks waited
  // for it.
  TaskId last_member(TaskId t) const {
    const auto last = [&](TaskId m) { return trace_.spans[m].entered == trace_.spans[t].matched; };
    if (last(t) || plan_.tasks[t].match == kNone) return t;
    const auto members = plan_.members_of(plan_.tasks[t].match);
    const auto it = std::find_if(members.begin(), members.end(), last);
    return it == members.end() ? t : *it;
  }

  // Returns the last moment before the issue of task t at which the host went on after a wait; from then on the host
  // has been busy issuing tasks. A wait for an event that had already come when the host reached the wait does not
  // count.
  const HostResume& waited_at(TaskId t) const {
    const auto& host = trace_.host[plan_.slot_of(t)];
    auto at = std::prev(
        std::upper_bound(host.begin(), host.end(), t, [](TaskId id, const HostResume& h) { return id < h.first; }));
    while (at != host.begin() && (at->cause == kNone || trace_.spans[at->cause].ended < at->time)) --at;
    return *at;
  }

  const Plan& plan_;
  const Trace& trace_;
  const Period period_;
  Attribution result_;
  TaskId last_ = kNone;
  std::uint32_t slot_ = 0;
  bool two_models_ = false;  // whether the plan has a frozen model beside the one that trains
  bool second_ = false;      // whether time is charged to the frozen model beside the one that trains
  Picoseconds from_ = 0;     // start of the idle time of a compute lane that is being explained
};

}  // namespace

TimeKind exposed_kind(LaneKind lane) {
  switch (lane) {
    case LaneKind::tensor:
      return TimeKind::exposed_tensor;
    case LaneKind::context:
      return TimeKind::exposed_context;
    case LaneKind::expert:
      return TimeKind::exposed_expert;
    case LaneKind::send_next:
    case LaneKind::receive_previous:
    case LaneKind::send_previous:
    case LaneKind::receive_next:
    case LaneKind::send_partner:
    case LaneKind::receive_partner:
    case LaneKind::embedding:
    case LaneKind::token_embeddings:
    case LaneKind::hidden_states:
    case LaneKind::vocabulary_sums:
    case LaneKind::hidden_gradients:
    case LaneKind::hand_over:
      return TimeKind::exposed_pipeline;
    case LaneKind::data_reduce:
    case LaneKind::expert_reduce:
    case LaneKind::data_gather:
    case LaneKind::replicate:
    case LaneKind::model:
      return TimeKind::exposed_data;
    case LaneKind::d2h:
    case LaneKind::h2d:
    case LaneKind::cpu:
    case LaneKind::nvme_read:
    case LaneKind::nvme_write:
      return TimeKind::offload;
    case LaneKind::compute:
      break;
  }
  return TimeKind::other;
}

Attribution attribute(const Plan& plan, const Trace& trace) { return attribute(plan, trace, period_of(plan, trace)); }

Attribution attribute(const Plan& plan, const Trace& trace, Period period) { return Walker(plan, trace, period).run(); }

}  // namespace orrery
