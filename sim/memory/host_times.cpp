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

// Finds the tasks during which the host runs further ahead of the device: a stage's forward passes from the third up
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

HostTimes::HostTimes(const Plan& plan, const Trace& trace, const MemoryOptions& options, std::uint32_t slot)
    : plan_(plan), trace_(trace), options_(options), slot_(slot), filling_(filling_of(plan, plan.classes[slot])) {}

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
  if (t < filling_.first || t >= filling_.second) return from(waited, issued, options_.host_part);
  const Picoseconds fills = trace_.spans[filling_.first].issued;
  if (waited >= fills) return from(waited, issued, options_.filling_part);
  return from(waited, fills, options_.host_part) + from(0, issued - fills, options_.filling_part);
}

Picoseconds HostTimes::now(TaskId t, TaskId behind, bool checked, Picoseconds lag) const {
  return std::max(
      {issue(t) + lag, behind == kNone ? 0 : trace_.spans[behind].entered, checked ? trace_.spans[t].entered : 0});
}

}  // namespace orrery
