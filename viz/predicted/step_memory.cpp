// This file says which buffers are in memory at a time of a step.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "viz/predicted/step.h"

namespace orrery {

std::vector<std::string> alive_at(const StepTimeline& s, std::uint32_t process, Picoseconds time, std::size_t most) {
  const Plan& plan = s.step->prediction.plan;
  const Trace& trace = s.step->prediction.trace;
  struct Sum {
    Bytes bytes = 0;
    std::int64_t count = 0;
    Category category = Category::activations;
  };
  std::map<std::string, Sum> by_name;
  const auto add = [&](const BlockBuffer& slot, std::int64_t sign) {
    Sum& sum = by_name[slot.name];
    sum.bytes += sign * slot.bytes;
    sum.count += sign;
    sum.category = slot.category;
  };
  std::vector<bool> held(plan.buffers, false);
  const auto change = [&](TaskId t, const Operand& o, bool take) {
    const std::uint32_t frame = frame_of(plan, plan.tasks[t].frame, o);
    const BlockBuffer& slot = plan.blocks[plan.frames[frame].block].buffers[o.slot];
    const std::uint32_t buffer = plan.frames[frame].first_buffer + o.slot;
    if (slot.bytes == 0 || slot.lazy || slot.contiguous || held[buffer] == take) return;
    held[buffer] = take;
    if ((take ? trace.spans[t].entered : trace.spans[t].ended) <= time) add(slot, take ? 1 : -1);
  };
  for (const Frame& f : plan.frames) {
    if (f.slot != process || !outlives_steps(plan.blocks[f.block].role)) continue;
    for (const BlockBuffer& slot : plan.blocks[f.block].buffers) add(slot, 1);
  }
  for (TaskId t = plan.classes[process].begin; t < plan.classes[process].end; ++t) {
    for (const Operand& o : plan.op_of(t).allocates) change(t, o, true);
    for (const Operand& o : plan.op_of(t).frees) change(t, o, false);
  }
  std::vector<std::pair<std::string, Sum>> sorted(by_name.begin(), by_name.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
  std::vector<std::string> lines;
  for (const auto& [name, sum] : sorted) {
    if (sum.bytes <= 0 || lines.size() >= most) break;
    lines.push_back(fmt::format("{} {}{} ({})", memory_text(static_cast<double>(sum.bytes)), name,
                                sum.count > 1 ? fmt::format(" x {}", sum.count) : "", orrery::name_of(sum.category)));
  }
  return lines;
}

}  // namespace orrery
