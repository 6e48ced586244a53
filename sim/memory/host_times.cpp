#include "sim/memory/host_times.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace orrery {

void HostLag::fall_behind(TaskId t, Picoseconds wait) {
  if (wait <= 0) return;
  lag_ = at(t) + wait;
  const std::vector<HostResume>& waits = trace_.host[slot_];
  const auto next = std::ranges::upper_bound(waits, t, {}, &HostResume::first);
  until_ = next == waits.end() ? kNone : next->first;
}

TaskId update_of(const Plan& plan, const RankClass& ranks) {
  TaskId update = ranks.end;
  while (update > ranks.begin && plan.op_of(update - 1).phase == Phase::step) --update;
  return update;
}

bool computes_loss(const Plan& plan, const RankClass& ranks, const std::vector<std::uint32_t>& frames) {
  return !ranks.second && std::ranges::any_of(frames, [&](std::uint32_t f) {
    return plan.blocks[plan.frames[f].block].role == BlockRole::output;
  });
}

// Finds the tasks during which the pipeline fills and the host runs ahead: a stage's forward passes from the third up
// to the first backward. A stage's second output is sent only when the next stage has ended its first forward; the
// compute stream waits for that send, the host does not. Peaks of memory of nanotron's first stages led to this rule,
// and to its start at the third pass.
static std::pair<TaskId, TaskId> filling_of(const Plan& plan, const RankClass& slot) {
  constexpr std::int32_t kTaken = 2;
  const auto micro_batch = [&](TaskId t) { return plan.frames[plan.tasks[t].frame].micro_batch; };
  const std::int64_t fill = plan.last_stage(slot) - slot.stage + 1;  // forward passes before the first backward can run
  TaskId end = slot.begin;
  while (end < slot.end && plan.op_of(end).phase != Phase::backward && micro_batch(end) < fill) ++end;
  TaskId third = slot.begin;
  while (third < end && micro_batch(third) < kTaken) ++third;
  return {third, end};
}

// Returns, for each stretch of tasks between two waits of the host, those during which the host runs ahead: while the
// pipeline fills, from the third pass on; in other stretches, but for the one before the first wait, all tasks after
// the last one for which the device waited. What the host takes for stages on different nodes holds up only hosts for
// which devices wait: peaks of memory of nanotron's first stages of two led to this rule (they are those of hosts that
// run ahead wherever the device takes longer than the host) and to its exception (steps of one or two micro-batches).
static std::vector<Ahead> ahead_of(const Plan& plan, const Trace& trace, std::uint32_t slot) {
  const RankClass& ranks = plan.classes[slot];
  const std::pair<TaskId, TaskId> filling = filling_of(plan, ranks);
  const TaskId third = filling.first, filled = filling.second;
  const auto awaited = [&](TaskId t) {
    return plan.op_of(t).lane == LaneKind::compute && trace.spans[t].entered <= trace.spans[t].issued;
  };
  std::vector<Ahead> all;
  TaskId begin = ranks.begin;
  const auto add = [&](TaskId end) {
    Ahead ahead{end, end};
    if (third < std::min(end, filled) && begin < filled) {
      ahead = {std::max(begin, third), std::min(end, filled)};
    } else if (begin > ranks.begin) {
      while (ahead.first > begin && !awaited(ahead.first - 1)) --ahead.first;
    }
    all.push_back(ahead);
    begin = end;
  };
  for (const HostResume& wait : trace.host[slot]) add(wait.first);
  add(ranks.end);
  return all;
}

HostTimes::HostTimes(const Plan& plan, const Trace& trace, const MemoryOptions& options, std::uint32_t slot)
    : trace_(trace), options_(options), slot_(slot) {
  if (options.host_part != options.filling_part) ahead_ = ahead_of(plan, trace, slot);
}

Picoseconds HostTimes::issue(TaskId t) const {
  const Picoseconds issued = trace_.spans[t].issued;
  if (options_.host_part == 1 && options_.filling_part == 1) return issued;
  const std::vector<HostResume>& waits = trace_.host[slot_];
  const auto after =
      std::upper_bound(waits.begin(), waits.end(), t, [](TaskId task, const HostResume& w) { return task < w.first; });
  const Picoseconds waited = after == waits.begin() ? 0 : std::prev(after)->time;
  const auto from = [](Picoseconds begin, Picoseconds end, double part) {
    return begin + static_cast<Picoseconds>(part * static_cast<double>(end - begin));
  };
  if (ahead_.empty()) return from(waited, issued, options_.host_part);
  const auto [ahead, until] = ahead_[static_cast<std::size_t>(after - waits.begin())];
  if (t < ahead || t >= until) return from(waited, issued, options_.host_part);
  const Picoseconds first = std::max(waited, trace_.spans[ahead].issued);
  return from(waited, first, options_.host_part) + from(0, issued - first, options_.filling_part);
}

Picoseconds HostTimes::now(TaskId t, TaskId behind, bool checked, Picoseconds lag) const {
  return std::max(
      {issue(t) + lag, behind == kNone ? 0 : trace_.spans[behind].entered, checked ? trace_.spans[t].entered : 0});
}

}  // namespace orrery
