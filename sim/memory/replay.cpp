#include "sim/memory/replay.h"

#include <optional>
#include <utility>

#include "sim/memory/host_times.h"
#include "sim/memory/shared_replay.h"
#include "sim/memory/slot_replay.h"

namespace orrery {

// Returns the memory of a class whose replay is that of another class, `of`; `by`: distance between their first tasks.
static SlotMemory moved(SlotMemory memory, std::uint32_t of, TaskId by) {
  if (memory.peak_task != kNone) memory.peak_task += by;
  memory.replay_of = of;
  return memory;
}

std::vector<SlotMemory> replay_memory(const Plan& plan, const Trace& trace, const MemoryOptions& options,
                                      std::vector<MemoryCurve>* curves) {
  PlanBuffers buffers(plan);
  std::vector<std::vector<std::uint32_t>> frames(plan.classes.size());
  for (std::uint32_t f = 0; f < plan.frames.size(); ++f) frames[plan.frames[f].slot].push_back(f);
  std::vector<SlotMemory> result;
  if (curves != nullptr) curves->assign(plan.classes.size(), {});
  SharedReplays shared(plan, trace, frames);
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    const HostTimes host(plan, trace, options, s);
    const std::optional<std::uint32_t> same = curves == nullptr ? shared.find(s, host) : std::nullopt;
    if (same) {
      result.push_back(moved(result[*same], *same, plan.classes[s].begin - plan.classes[*same].begin));
      continue;
    }
    MemoryCurve* curve = curves == nullptr ? nullptr : &(*curves)[s];
    ReplayMoments moments;
    const bool notes = curves == nullptr && shared.wants(s);
    result.push_back(replay_slot(plan, trace, options, frames[s], host, buffers, curve, notes ? &moments : nullptr));
    if (notes) shared.add(s, std::move(moments));
  }
  return result;
}

}  // namespace orrery
