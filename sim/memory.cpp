#include "sim/memory.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "models/pool.h"

namespace orrery {
namespace {

constexpr std::size_t kLargest = 6;

constexpr int kNotHeld = -1;
constexpr int kBeyond = -2;  // on the host or on disks
constexpr int kPlaced = -3;  // in the arena, which is held from the start

struct Held {
  BlockId block = 0;
  int stream = kNotHeld;
  Picoseconds used_until = 0;  // by the last collective that it was for, where those hold their tensors
};

constexpr Bytes kUnlimited = Bytes{1} << 60;

// What a task puts into the device's launch queue: its kernels; around a collective of another stream PyTorch records
// two events and lets two streams wait for them (ProcessGroupNCCL.cpp, syncStream and WorkNCCL::synchronize).
TaskId launches(const Op& op) {
  constexpr TaskId kEvents = 4;
  return static_cast<TaskId>(std::max(1, kernels_of(op.work))) + (moves(op) ? kEvents : 0);
}

// ZeRO-1's, of what its ranks have updated.
bool gathers_parameters(const Op& op, const Collective& c) {
  return c.kind == CollectiveKind::all_gather && op.phase == Phase::step && op.lane == LaneKind::data_gather;
}

class Replay {
 public:
  Replay(const Plan& plan, const Trace& trace, const MemoryOptions& options, std::vector<Held>& held,
         std::vector<char>& named)
      : plan_(plan),
        trace_(trace),
        options_(options),
        allocator_({options.capacity, options.expandable_segments}),
        held_(held),
        named_(named) {}

  SlotMemory run(const RankSlot& slot, const std::vector<std::uint32_t>& frames) {
    if (options_.workspace > 0) {
      count(Category::workspace, allocator_.size(allocate(options_.workspace, 0, 0)));
    }
    for (const std::uint32_t f : frames) {
      const Frame& frame = plan_.frames[f];
      if (!outlives_steps(plan_.blocks[frame.block].role)) continue;
      const auto& slots = plan_.blocks[frame.block].slots;
      for (std::size_t s = 0; s < slots.size(); ++s) {
        if (!slots[s].lazy) take(f, static_cast<std::uint16_t>(s), 0, 0);
      }
    }
    find_filling(slot);
    for (step_ = 0; step_ < 2; ++step_) {
      for (TaskId t = slot.begin; t < slot.end; ++t) visit(slot, t);
      if (step_ == 0) result_.first_step_peak = result_.peak;
    }
    result_.peak_reserved = allocator_.stats().reserved.peak;
    result_.retries = allocator_.stats().retries;
    name_largest();
    return result_;
  }

 private:
  void visit(const RankSlot& slot, TaskId t) {
    const Op& op = plan_.op_of(t);
    if (t == slot.begin) queued_ = 0, oldest_ = t;
    for (queued_ += launches(op); queued_ > kLaunchQueue; ++oldest_) queued_ -= launches(plan_.op_of(oldest_));
    const auto* collective = std::get_if<Collective>(&op.work);
    const bool lists = options_.gathers_lists && collective && gathers_parameters(op, *collective);
    if (op.allocates.empty() && op.frees.empty() && !lists) return;
    const Picoseconds offset = step_ * trace_.step_time;
    const Picoseconds behind = oldest_ > slot.begin ? trace_.spans[oldest_ - 1].entered : 0;
    const Picoseconds now = offset + std::max(host_at(t), behind);
    const int stream = pool_of(op.lane);
    for (const Operand& o : op.allocates) take(frame_of(plan_, plan_.tasks[t].frame, o), o.slot, stream, now);
    if (allocated_ > result_.peak) note_peak(t);
    if (options_.collectives_hold_tensors && collective) note_uses(t, offset + trace_.spans[t].ended);
    if (lists) gather_lists(t, *collective, now, offset + trace_.spans[t].ended);
    for (const Operand& o : op.frees) {
      const bool sent = std::holds_alternative<Transfer>(op.work) || std::holds_alternative<PlaceCopy>(op.work);
      give(frame_of(plan_, plan_.tasks[t].frame, o), o.slot, stream, sent, offset + trace_.spans[t].ended);
    }
  }

  // The forwards before the first backward but the first of them, of a pipeline that has two to fill it with.
  void find_filling(const RankSlot& slot) {
    TaskId backward = slot.begin;
    while (backward < slot.end && plan_.op_of(backward).phase != Phase::backward) ++backward;
    const auto reaches = [&](std::int32_t micro_batch) {
      TaskId t = slot.begin;
      while (t < backward && plan_.frames[plan_.tasks[t].frame].micro_batch < micro_batch) ++t;
      return t;
    };
    const std::int32_t last = backward == slot.begin ? 0 : plan_.frames[plan_.tasks[backward - 1].frame].micro_batch;
    filling_ = {last > 1 ? reaches(1) : backward, backward};
  }

  // When the host comes to a task, at its own pace from its last wait.
  Picoseconds host_at(TaskId t) const {
    const Picoseconds issued = trace_.spans[t].issued;
    const double part = t >= filling_.first && t < filling_.second ? options_.filling_part : options_.host_part;
    if (part == 1) return issued;
    const std::vector<HostResume>& waits = trace_.host[plan_.slot_of(t)];
    const auto after = std::upper_bound(waits.begin(), waits.end(), t,
                                        [](TaskId task, const HostResume& w) { return task < w.first; });
    const Picoseconds begun = options_.host_part == 1 ? trace_.spans[filling_.first].issued : 0;
    const Picoseconds since = after == waits.begin() ? begun : std::max(begun, std::prev(after)->time);
    return since + static_cast<Picoseconds>(part * static_cast<double>(issued - since));
  }

  // What every rank of the group updated comes into a buffer of all, and from there into a tensor a rank.
  void gather_lists(TaskId t, const Collective& gather, Picoseconds now, Picoseconds ended) {
    const auto ranks =
        static_cast<std::int64_t>(plan_.dimensions[static_cast<std::size_t>(gather.group)].groups.front().size());
    std::vector<BlockId> copies(static_cast<std::size_t>(ranks) + 1);
    for (BlockId& copy : copies) copy = allocate(ceil_div(gather.bytes, ranks), 0, now);
    copies.push_back(allocate(gather.bytes, 0, now));
    for (const BlockId copy : copies) count(Category::buffers, allocator_.size(copy));
    if (allocated_ > result_.peak) note_peak(t);
    for (const BlockId copy : copies) {
      count(Category::buffers, -allocator_.size(copy));
      allocator_.free_after(copy, ended);
    }
  }

  // What is gathered lies in buffers that the stack keeps.
  void note_uses(TaskId t, Picoseconds ended) {
    const bool gathers = std::get<Collective>(plan_.op_of(t).work).kind == CollectiveKind::all_gather;
    for (const Operand& o : plan_.op_of(t).operands) {
      if (gathers && o.access != Access::read) continue;
      const Frame& frame = plan_.frames[frame_of(plan_, plan_.tasks[t].frame, o.scope)];
      held_[frame.first_buffer + o.slot].used_until = ended;
    }
  }

  void take(std::uint32_t frame, std::uint16_t slot, int stream, Picoseconds now) {
    const Slot& what = plan_.blocks[plan_.frames[frame].block].slots[slot];
    Held& held = held_[plan_.frames[frame].first_buffer + slot];
    if (what.bytes == 0 || held.stream != kNotHeld) return;
    if (what.contiguous) {
      held.stream = kPlaced;
      return;
    }
    if (what.home != Home::device) {
      held.stream = kBeyond;
      count_beyond(what.home, what.bytes);
      return;
    }
    held = {allocate(what.bytes, stream, now), stream, 0};
    count(what.category, allocator_.size(held.block));
  }

  // Where there is no room even after the allocator's retry, the device is taken to be larger from then on: the figures
  // then say how much it would have needed.
  BlockId allocate(Bytes bytes, int stream, Picoseconds now) {
    if (const auto block = allocator_.malloc(bytes, stream, now)) return *block;
    if (!result_.out_of_memory) {
      result_.refused = bytes;
      result_.free_then = options_.capacity - allocator_.stats().active.now;
    }
    result_.out_of_memory = true;
    allocator_.set_capacity(kUnlimited);
    return *allocator_.malloc(bytes, stream, now);
  }

  void give(std::uint32_t frame, std::uint16_t slot, int stream, bool sent, Picoseconds ended) {
    const Slot& what = plan_.blocks[plan_.frames[frame].block].slots[slot];
    Held& held = held_[plan_.frames[frame].first_buffer + slot];
    if (what.bytes == 0) return;
    if (held.stream == kNotHeld) return;
    if (held.stream == kPlaced) {
      held.stream = kNotHeld;
      return;
    }
    if (held.stream == kBeyond) {
      held.stream = kNotHeld;
      count_beyond(what.home, -what.bytes);
      return;
    }
    count(what.category, -allocator_.size(held.block));
    const bool elsewhere = held.stream != stream || stream != 0 || sent;
    const Picoseconds until = std::max(held.used_until, elsewhere ? ended : 0);
    if (until == 0)
      allocator_.free(held.block);
    else
      allocator_.free_after(held.block, until);
    held.stream = kNotHeld;
  }

  void count(Category category, Bytes bytes) {
    now_[static_cast<std::size_t>(category)] += bytes;
    allocated_ += bytes;
  }

  void count_beyond(Home home, Bytes bytes) {
    (home == Home::host ? host_ : nvme_) += bytes;
    result_.host_peak = std::max(result_.host_peak, host_);
    result_.nvme_peak = std::max(result_.nvme_peak, nvme_);
  }

  void note_peak(TaskId t) {
    result_.peak = allocated_;
    result_.at_peak = now_;
    result_.peak_task = t;
    result_.peak_step = step_;
  }

  void name_largest();

  const Plan& plan_;
  const Trace& trace_;
  const MemoryOptions& options_;
  CachingAllocator allocator_;
  std::vector<Held>& held_;   // by buffer
  std::vector<char>& named_;  // by buffer: counted by name_largest()
  SlotMemory result_;
  CategoryBytes now_{};
  Bytes allocated_ = 0, host_ = 0, nvme_ = 0;
  int step_ = 0;
  std::pair<TaskId, TaskId> filling_;
  TaskId queued_ = 0, oldest_ = 0;  // launches that the device has not begun when the host makes the next, the first
};

// What was alive at the peak is found again by counting takes and gives up to it, by name.
void Replay::name_largest() {
  if (result_.peak_task == kNone) return;
  const RankSlot& slot = plan_.slots[plan_.slot_of(result_.peak_task)];
  std::map<std::string, std::pair<Bytes, int>> by_name;
  const auto count_one = [&](std::uint32_t frame, std::uint16_t s, bool on) {
    const Slot& what = plan_.blocks[plan_.frames[frame].block].slots[s];
    char& is = named_[plan_.frames[frame].first_buffer + s];
    if (what.bytes == 0 || what.contiguous || what.home != Home::device || (is != 0) == on) return;
    is = on ? 1 : 0;
    auto& [bytes, number] = by_name[what.name];
    bytes += on ? what.bytes : -what.bytes;
    number += on ? 1 : -1;
  };
  for (TaskId t = slot.begin; t <= result_.peak_task; ++t) {
    const std::uint32_t frame = plan_.tasks[t].frame;
    for (const Operand& o : plan_.op_of(t).allocates) count_one(frame_of(plan_, frame, o), o.slot, true);
    if (t == result_.peak_task) break;
    for (const Operand& o : plan_.op_of(t).frees) count_one(frame_of(plan_, frame, o), o.slot, false);
  }
  std::vector<std::pair<Bytes, std::string>> largest;
  for (const auto& [name, sum] : by_name) {
    if (sum.first > 0) largest.emplace_back(sum.first, fmt::format("{} x {}", name, sum.second));
  }
  std::sort(largest.rbegin(), largest.rend());
  for (std::size_t i = 0; i < std::min(kLargest, largest.size()); ++i) {
    result_.alive.push_back(
        fmt::format("{:.2f} GiB {}", static_cast<double>(largest[i].first) / 1073741824.0, largest[i].second));
  }
}

}  // namespace

std::vector<SlotMemory> replay_memory(const Plan& plan, const Trace& trace, const MemoryOptions& options) {
  std::vector<Held> held(plan.buffers);  // every slot has buffers of its own
  std::vector<char> named(plan.buffers);
  std::vector<std::vector<std::uint32_t>> frames(plan.slots.size());
  for (std::uint32_t f = 0; f < plan.frames.size(); ++f) frames[plan.frames[f].slot].push_back(f);
  std::vector<SlotMemory> result;
  for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
    result.push_back(Replay(plan, trace, options, held, named).run(plan.slots[s], frames[s]));
  }
  return result;
}

}  // namespace orrery
