// This file says which buffers are in memory at a time of a step.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/print/text.h"
#include "viz/predicted/step.h"

namespace orrery {
namespace {

// The buffers that a class of ranks (slot) holds at one time of a step, summed by name: those that the memory curve
// (sim/memory/replay.h) counts, which like these are taken and given back when the host issues a task.
class AliveBuffers {
 public:
  struct Sum {
    Bytes bytes = 0;
    std::int64_t count = 0;
    Category category = Category::activations;
  };

  // makes_states: whether the optimizer's states are allocated in this step, by the first task that uses them.
  AliveBuffers(const Plan& plan, const Trace& trace, std::uint32_t slot, Picoseconds time, bool makes_states)
      : plan_(plan), trace_(trace), time_(time), makes_states_(makes_states), held_(plan.buffers, false) {
    for (const Frame& f : plan.frames) {
      if (f.slot != slot || !outlives_steps(plan.blocks[f.block].role)) continue;
      for (const BlockBuffer& b : plan.blocks[f.block].buffers) {
        if (b.home == MemoryTier::device && !(b.lazy && makes_states)) add(b, 1);
      }
    }
    for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
      for (const Operand& o : plan.op_of(t).allocates) change(t, o, true);
      for (const Operand& o : plan.op_of(t).frees) change(t, o, false);
    }
  }

  // The sums, the largest first.
  std::vector<std::pair<std::string, Sum>> sorted() const {
    std::vector<std::pair<std::string, Sum>> result(by_name_.begin(), by_name_.end());
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.second.bytes > b.second.bytes; });
    return result;
  }

 private:
  void add(const BlockBuffer& b, std::int64_t sign) {
    Sum& sum = by_name_[b.name];
    sum.bytes += sign * b.bytes;
    sum.count += sign;
    sum.category = b.category;
  }

  void change(TaskId t, const Operand& o, bool take) {
    const std::uint32_t frame = frame_of(plan_, plan_.tasks[t].frame, o);
    const BlockBuffer& b = plan_.blocks[plan_.frames[frame].block].buffers[o.slot];
    const std::uint32_t buffer = plan_.frames[frame].first_buffer + o.slot;
    if (b.bytes == 0 || b.contiguous || b.home != MemoryTier::device || held_[buffer] == take) return;
    if (b.lazy && !(take && makes_states_)) return;
    held_[buffer] = take;
    if (trace_.spans[t].issued <= time_) add(b, take ? 1 : -1);
  }

  const Plan& plan_;
  const Trace& trace_;
  Picoseconds time_;
  bool makes_states_;
  std::vector<bool> held_;
  std::map<std::string, Sum> by_name_;
};

}  // namespace

std::vector<std::string> alive_at(const StepTimeline& s, std::uint32_t process, Picoseconds time, std::size_t most) {
  const Step& step = *s.step;
  const Plan& plan = step.prediction.plan;
  const Trace& trace = step.memory ? *step.memory : step.prediction.trace;
  const bool repeated = plan.steps == 1 && step.spec.steps > 1 && trace.step_time > 0;
  const bool first = step.first || (repeated && time < trace.step_time);
  const bool makes_states = first && step.spec.software.memory.moments != MomentTensors::at_start;
  const AliveBuffers alive(plan, trace, process, repeated ? time % trace.step_time : time, makes_states);
  std::vector<std::string> lines;
  for (const auto& [name, sum] : alive.sorted()) {
    if (sum.bytes <= 0 || lines.size() >= most) break;
    lines.push_back(fmt::format("{} {}{} ({})", memory_text(static_cast<double>(sum.bytes)), name,
                                sum.count > 1 ? fmt::format(" x {}", sum.count) : "", orrery::name_of(sum.category)));
  }
  return lines;
}

}  // namespace orrery
