#include "sim/memory/live_memory.h"

#include <algorithm>

namespace orrery {
namespace {

struct Delta {
  Picoseconds time = 0;
  Category category = Category::activations;
  Bytes bytes = 0;
};

const BlockBuffer& slot_of(const Plan& plan, std::uint32_t frame, const Operand& o) {
  return plan.blocks[plan.frames[frame].block].buffers[o.slot];
}

// The changes of allocated memory that the tasks of one class of ranks make, in the order of the tasks, not of their
// times.
std::vector<Delta> deltas_of(const Plan& plan, const Trace& trace, const RankClass& slot, std::vector<bool>& held) {
  std::vector<Delta> deltas;
  const auto change = [&](TaskId t, const Operand& o, bool take) {
    const std::uint32_t frame = frame_of(plan, plan.tasks[t].frame, o);
    const BlockBuffer& what = slot_of(plan, frame, o);
    const std::uint32_t buffer = plan.frames[frame].first_buffer + o.slot;
    if (what.bytes == 0 || what.lazy || what.contiguous || what.home != MemoryTier::device || held[buffer] == take)
      return;
    held[buffer] = take;
    deltas.push_back(
        {take ? trace.spans[t].entered : trace.spans[t].ended, what.category, take ? what.bytes : -what.bytes});
  };
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    for (const Operand& o : plan.op_of(t).allocates) change(t, o, true);
    for (const Operand& o : plan.op_of(t).frees) change(t, o, false);
  }
  return deltas;
}

std::vector<MemorySample> state_of_slots(const Plan& plan) {
  std::vector<MemorySample> state(plan.classes.size());
  for (std::uint32_t s = 0; s < state.size(); ++s) state[s].slot = s;
  for (const Frame& f : plan.frames) {
    if (!outlives_steps(plan.blocks[f.block].role)) continue;
    for (const BlockBuffer& s : plan.blocks[f.block].buffers)
      state[f.slot].bytes[static_cast<std::size_t>(s.category)] += s.home == MemoryTier::device ? s.bytes : 0;
  }
  return state;
}

}  // namespace

std::vector<MemorySample> live_memory(const Plan& plan, const Trace& trace) {
  std::vector<MemorySample> samples;
  std::vector<bool> held(plan.buffers, false);
  for (MemorySample now : state_of_slots(plan)) {
    std::vector<Delta> deltas = deltas_of(plan, trace, plan.classes[now.slot], held);
    std::stable_sort(deltas.begin(), deltas.end(), [](const Delta& a, const Delta& b) { return a.time < b.time; });
    samples.push_back(now);
    for (const Delta& d : deltas) {
      now.bytes[static_cast<std::size_t>(d.category)] += d.bytes;
      if (samples.back().time != d.time || samples.back().slot != now.slot) samples.push_back(now);
      samples.back().time = now.time = d.time;
      samples.back().bytes = now.bytes;
    }
  }
  return samples;
}

}  // namespace orrery
