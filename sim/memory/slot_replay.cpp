#include "sim/memory/slot_replay.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "models/layers/blocks.h"
#include "models/plan/stream_pool.h"
#include "sim/memory/largest_alive.h"
#include "sim/memory/launch_queue.h"
#include "sim/memory/state_tensors.h"

namespace orrery {
namespace {

// The most steps that are replayed after the first in order to find a step after which the use of memory is steady.
constexpr std::ptrdiff_t kReplayedSteps = 12;
constexpr int kNotHeld = PlanBuffers::kNotHeld;
constexpr int kBeyond = -2;  // marks a buffer that is not on the device, but on the host or on disks
constexpr int kPlaced = -3;  // marks a buffer in a preallocated range, which is allocated from the start
using Held = PlanBuffers::Held;
constexpr Bytes kWithoutEnd = Bytes{1} << 60;

// Whether a collective is the all-gather of weights at the end of a ZeRO-1 step, when each rank has updated its part of
// the weights.
bool gathers_parameters(const Op& op, const Collective& c) {
  return c.kind == CollectiveKind::all_gather && op.phase == Phase::step && op.lane == LaneKind::data_gather;
}

// Whether an op is a gradient reduction, or a weight gather, among data ranks that runs once at the end of a step.
bool ends_step(const Op& op) {
  return op.phase == Phase::step && (reduces_gradients(op.lane) || op.lane == LaneKind::data_gather);
}

class Replay : BlockSource {
 public:
  Replay(const Plan& plan, const Trace& trace, const MemoryOptions& options, PlanBuffers& buffers,
         const std::vector<std::uint32_t>& frames, const HostTimes& host, MemoryCurve* curve, ReplayMoments* moments)
      : plan_(plan),
        trace_(trace),
        options_(options),
        allocator_({options.capacity, options.expandable_segments}),
        states_(plan, frames, options.moments_by_weight, options.gradients_by_weight, *this),
        held_(buffers.held),
        alive_(buffers.alive),
        host_(host),
        curve_(curve),
        moments_(moments),
        lag_(host.lag()),
        queue_(plan),
        backward_workspace_(options.backward_workspace) {}

  SlotMemory run(const RankClass& slot, const std::vector<std::uint32_t>& frames) {
    if (options_.workspace > 0) {
      count(Category::workspace, allocator_.size(allocate(options_.workspace, 0, 0)));
    }
    for (const std::uint32_t f : frames) {
      const Frame& frame = plan_.frames[f];
      if (!outlives_steps(plan_.blocks[frame.block].role)) continue;
      const auto& slots = plan_.blocks[frame.block].buffers;
      for (std::size_t s = 0; s < slots.size(); ++s) {
        if (!slots[s].lazy || options_.moments_at_start) take(f, static_cast<std::uint16_t>(s), 0, 0);
      }
    }
    update_ = update_of(plan_, slot);
    slot_ = static_cast<std::uint32_t>(&slot - plan_.classes.data());
    waits_for_loss_ = options_.waits_for_loss && computes_loss(plan_, slot, frames);
    first_ = slot.begin;
    plays_ = true;
    play(slot);
    result_.first_step_peak = result_.peak;
    play_to_rest(slot);
    result_.update_reserved = allocator_.stats().reserved.peak;
    result_.peak_reserved = std::max(reserved_before_, result_.update_reserved);
    result_.retries = allocator_.stats().retries;
    if (result_.peak_task != kNone) result_.alive = largest_alive(plan_, result_.peak_task, alive_);
    return result_;
  }

 private:
  // Replays steps until memory is steady. Optimizer moments appear at the end of the first step, and later steps give
  // cached segments back to the device to make space for them. Memory is steady when a step gives nothing back, or
  // calls cudaMalloc and cudaFree as often as the step before. If memory never becomes steady, the mean number of calls
  // over the last half of the steps counts.
  void play_to_rest(const RankClass& slot) {
    std::vector<std::int64_t> calls;
    bool rests = false;
    while (!rests && std::ssize(calls) < kReplayedSteps) {
      const bool gives_back = play(slot);
      if (result_.out_of_memory || options_.expandable_segments) return;
      rests = !gives_back || (!calls.empty() && calls.back() == calls_);
      calls.push_back(gives_back ? calls_ : 0);
    }
    const auto first = rests ? calls.end() - 1 : calls.begin() + kReplayedSteps / 2;
    result_.device_calls = std::accumulate(first, calls.end(), std::int64_t{0}) / (calls.end() - first) / plan_.steps;
  }

  // Replays one more step. Returns whether the allocator gave cached segments back to the device.
  bool play(const RankClass& slot) {
    const AllocatorStats before = allocator_.stats();
    if (curve_ != nullptr) curve_->emplace_back();
    clock_ = 0;
    lag_.restart();
    queue_.restart(slot.begin);
    sample();
    for (TaskId t = slot.begin; t < slot.end; ++t) visit(t);
    ++step_;
    const AllocatorStats& after = allocator_.stats();
    calls_ = after.device_allocations - before.device_allocations + after.device_frees - before.device_frees;
    return after.retries > before.retries;
  }

  void visit(TaskId t) {
    const Op& op = plan_.op_of(t);
    if (t == update_) {
      if (waits_for_loss_) wait_for_loss(t);
      reserved_before_ = std::max(reserved_before_, allocator_.stats().reserved.peak);
      allocator_.reset_peaks();
    }
    behind_ = queue_.add(t);
    const auto* collective = std::get_if<Collective>(&op.work);
    const bool lists = options_.gathers_lists && collective && gathers_parameters(op, *collective);
    const bool copies = options_.flat_copies > 0 && collective && ends_step(op);
    const bool product = std::holds_alternative<Gemm>(op.work) || std::holds_alternative<GroupedGemm>(op.work);
    const bool first = backward_workspace_ > 0 && product && op.phase != Phase::forward && op.phase != Phase::step;
    if (op.allocates.empty() && op.frees.empty() && !lists && !copies && !first && !states_.has_gradients()) return;
    const Picoseconds offset = step_ * trace_.step_time;
    // A framework that copies gradients into flat buffers also checks them for infinities, and its host waits for the
    // result before it issues the update.
    checked_ = options_.flat_copies > 0 && op.optimizer;
    const Picoseconds now = offset + host_.now(t, behind_, checked_, lag_.at(t));
    visited_ = t;
    clock_ = std::max(clock_, now - offset);
    if (first) take(std::exchange(backward_workspace_, 0), Category::workspace, now);
    const int stream = pool_of(op.lane);
    for (const Operand& o : op.allocates) take(frame_of(plan_, plan_.tasks[t].frame, o), o.slot, stream, now);
    if (states_.has_gradients())
      states_.change_gradients(
          t, [&] { return added_gradient(t); }, now);
    note_most(t);
    if (const auto* update = std::get_if<Update>(&op.work)) widen_gradients(t, *update, now);
    if (copies) copy_flat(t, *collective, now, offset + trace_.spans[t].ended);
    if (options_.collectives_hold_tensors && collective) note_uses(t, offset + trace_.spans[t].ended);
    if (lists) gather_lists(t, *collective, now, offset + trace_.spans[t].ended);
    for (const Operand& o : op.frees) {
      const bool sent = std::holds_alternative<Transfer>(op.work) || std::holds_alternative<PlaceCopy>(op.work);
      give(frame_of(plan_, plan_.tasks[t].frame, o), o.slot, stream, sent, offset + trace_.spans[t].ended);
    }
    sample();
  }

  // Adds a sample of the memory of this class of ranks, unless it equals the last sample.
  void sample() {
    if (curve_ == nullptr || (!curve_->back().empty() && curve_->back().back().bytes == now_)) return;
    curve_->back().push_back({clock_, slot_, now_});
  }

  void wait_for_loss(TaskId t) {
    if (moments_ != nullptr) moments_->give_up();
    lag_.fall_behind(t, trace_.spans[t].entered - host_.issue(t) - lag_.at(t));
  }

  // Must be called when the allocator has retried a request, for which the host waited for all events.
  void fall_behind(Picoseconds now) {
    if (moments_ != nullptr && plays_) moments_->retry();
    lag_.fall_behind(visited_, allocator_.stats().synchronized_until - now);
  }

  // Allocates the tensors for an all-gather of weights of which each rank has updated a part: a buffer for the result,
  // and a tensor for each rank's part, to which the result is copied.
  void gather_lists(TaskId t, const Collective& gather, Picoseconds now, Picoseconds ended) {
    const auto ranks =
        static_cast<std::int64_t>(plan_.dimensions[static_cast<std::size_t>(gather.group)].groups.front().size());
    std::vector<Bytes> copies(static_cast<std::size_t>(ranks) + 1, ceil_div(gather.bytes, ranks));
    copies.push_back(gather.bytes);
    pass_through(copies, t, now, ended);
  }

  // Allocates the flat buffers of a collective. Gradients of a bucket are copied into one before their reduction,
  // unless they are contiguous already; gathered weights arrive in one (ProcessGroupNCCL::allgather, newLikeFlat).
  void copy_flat(TaskId t, const Collective& of, Picoseconds now, Picoseconds ended) {
    const bool reduces = reduces_gradients(plan_.op_of(t).lane);
    if (reduces && !states_.has_gradients()) return;
    const auto number = static_cast<std::size_t>(reduces ? options_.flat_copies : 1);
    const std::vector<Bytes> copies(number, std::min(of.bytes, options_.flat_copy));
    pass_through(copies, t, now, options_.blocking_launches ? 0 : ended);
  }

  // Replays the update of a chunk of layers with 16-bit gradients: frees the gradients of parameters that other ranks
  // update, copies the gradients of this rank's part into one tensor, and converts that tensor to the data type of the
  // master weights (DeepSpeed stage_1_and_2.py, step()).
  void widen_gradients(TaskId t, const Update& update, Picoseconds now) {
    if (!states_.has_gradients()) return;
    const std::uint32_t state = frame_of(plan_, plan_.tasks[t].frame, Scope::state);
    if (options_.flat_copies > 0 && update.master > update.gradient) {
      states_.give_gradients(state, update.elements * update.gradient);
      const BlockId flat = take(update.elements * update.gradient, Category::gradients, now);
      const BlockId wide = take(update.elements * update.master, Category::gradients, now);
      note_most(t);
      give(flat, Category::gradients);
      states_.give_gradients(state, 0);
      give(wide, Category::gradients);
    }
  }

  // Takes away from a buffer, and returns, the memory block of the gradient that task t adds to a sum that does not
  // exist yet, so that the block itself can become the sum.
  std::optional<BlockId> added_gradient(TaskId t) {
    for (const Operand& o : plan_.op_of(t).operands) {
      if (o.scope != Scope::own || o.access != Access::read) continue;
      Held& held = held_[plan_.frames[plan_.tasks[t].frame].first_buffer + o.slot];
      if (held.stream != 0 || held.used_until != 0) continue;
      held.stream = kNotHeld;
      const Frame& frame = plan_.frames[plan_.tasks[t].frame];
      count(plan_.blocks[frame.block].buffers[o.slot].category, -allocator_.size(held.block));
      count(Category::gradients, allocator_.size(held.block));
      return held.block;
    }
    return std::nullopt;
  }

  // Allocates temporary tensors for a collective. They are freed at the time `ended`, when the collective has ended, or
  // immediately if `ended` is 0.
  void pass_through(const std::vector<Bytes>& copies, TaskId t, Picoseconds now, Picoseconds ended) {
    std::vector<BlockId> blocks;
    blocks.reserve(copies.size());
    for (const Bytes copy : copies) blocks.push_back(take(copy, Category::buffers, now));
    note_most(t);
    if (moments_ != nullptr) moments_->keep(t - first_);
    for (const BlockId block : blocks) {
      count(Category::buffers, -allocator_.size(block));
      if (ended > 0) note_wait(t - first_, {});
      ended == 0 ? allocator_.free(block) : allocator_.free_after(block, ended);
    }
  }

  BlockId take(Bytes bytes, Category category, Picoseconds now) override {
    const BlockId block = allocate(bytes, 0, now);
    count(category, allocator_.size(block));
    return block;
  }

  void give(BlockId block, Category category) override {
    count(category, -allocator_.size(block));
    allocator_.free(block);
  }

  Bytes size(BlockId block) const override { return allocator_.size(block); }

  // Records the time until which a collective uses its tensors, except for the output of a weight gather, which is in
  // buffers that the framework keeps.
  void note_uses(TaskId t, Picoseconds ended) {
    const bool gathers = std::get<Collective>(plan_.op_of(t).work).kind == CollectiveKind::all_gather;
    if (moments_ != nullptr) moments_->keep(t - first_);
    for (const Operand& o : plan_.op_of(t).operands) {
      if (gathers && o.access != Access::read) continue;
      const Frame& frame = plan_.frames[frame_of(plan_, plan_.tasks[t].frame, o.scope)];
      Held& held = held_[frame.first_buffer + o.slot];
      held.used_until = ended;
      held.used_by = t - first_;
      held.used_in = step_;
    }
  }

  void take(std::uint32_t frame, std::uint16_t slot, int stream, Picoseconds now) {
    const Block& block = plan_.blocks[plan_.frames[frame].block];
    const BlockBuffer& what = block.buffers[slot];
    Held& held = held_[plan_.frames[frame].first_buffer + slot];
    if (what.bytes == 0 || held.stream != kNotHeld) return;
    if (what.contiguous) {
      held.stream = kPlaced;
      return;
    }
    if (what.home != MemoryTier::device) {
      held.stream = kBeyond;
      count_beyond(what.home, what.bytes);
      return;
    }
    const bool state = block.role == BlockRole::state;
    if (state && slot == kGradients && states_.has_gradients()) return;
    if (what.lazy && states_.has_moments(frame)) {
      if (slot == kMoment1 || block.buffers[kMoment1].bytes == 0) states_.take_moments(frame, now);
      held.stream = kPlaced;
      return;
    }
    held = {allocate(what.bytes, stream, now), stream, 0};
    count(what.category, allocator_.size(held.block));
  }

  // Allocates a block. If it does not fit even after the allocator's retry, the device's capacity is raised from this
  // moment on, so that the figures say how much memory would have been needed.
  BlockId allocate(Bytes bytes, int stream, Picoseconds now) {
    if (moments_ != nullptr && plays_) {
      const TaskId behind = behind_ == kNone ? kNone : behind_ - first_;
      moments_->request(visited_ - first_, behind, checked_, step_, now);
    }
    const std::int64_t retries = allocator_.stats().retries;
    const auto block = allocator_.malloc(bytes, stream, now);
    if (allocator_.stats().retries > retries) fall_behind(now);
    if (block) return *block;
    if (!result_.out_of_memory) {
      result_.refused = bytes;
      result_.free_then = options_.capacity - allocator_.stats().active.now;
    }
    result_.out_of_memory = true;
    allocator_.set_capacity(kWithoutEnd);
    return *allocator_.malloc(bytes, stream, now);
  }

  void give(std::uint32_t frame, std::uint16_t slot, int stream, bool sent, Picoseconds ended) {
    const BlockBuffer& what = plan_.blocks[plan_.frames[frame].block].buffers[slot];
    Held& held = held_[plan_.frames[frame].first_buffer + slot];
    if (what.bytes == 0 || held.stream == kNotHeld) return;
    if (held.stream == kPlaced || held.stream == kBeyond) {
      if (held.stream == kBeyond) count_beyond(what.home, -what.bytes);
      held.stream = kNotHeld;
      return;
    }
    count(what.category, -allocator_.size(held.block));
    const bool elsewhere = held.stream != stream || stream != 0 || sent;
    const Picoseconds until = std::max(held.used_until, elsewhere ? ended : 0);
    if (until == 0) {
      if (elsewhere && moments_ != nullptr) moments_->give_up();
      allocator_.free(held.block);
    } else {
      note_wait(elsewhere ? visited_ - first_ : kNone, held);
      allocator_.free_after(held.block, until);
    }
    held.stream = kNotHeld;
  }

  // Notes that a block is freed when a task has ended (kNone: no task), and a collective that uses the block.
  void note_wait(TaskId task, const Held& held) {
    if (moments_ != nullptr) moments_->wait(task, step_, held.used_until > 0 ? held.used_by : kNone, held.used_in);
  }

  void count(Category category, Bytes bytes) {
    now_[static_cast<std::size_t>(category)] += bytes;
    allocated_ += bytes;
  }

  void count_beyond(MemoryTier home, Bytes bytes) {
    const std::size_t t = index_of(home);
    beyond_[t] += bytes;
    result_.tier_peak[t] = std::max(result_.tier_peak[t], beyond_[t]);
  }

  // Must be called when a task has allocated all its buffers, because the allocated memory may then be at its peak.
  void note_most(TaskId t) {
    sample();
    if (allocated_ <= result_.peak) return;
    result_.peak = allocated_;
    result_.at_peak = now_;
    result_.peak_task = t;
    result_.peak_step = step_;
  }

  const Plan& plan_;
  const Trace& trace_;
  const MemoryOptions& options_;
  CachingAllocator allocator_;
  StateTensors states_;
  std::vector<Held>& held_;
  std::vector<char>& alive_;
  SlotMemory result_;
  CategoryBytes now_{};
  Bytes allocated_ = 0;
  TierBytes beyond_{};  // bytes allocated now in each memory tier beyond the device
  int step_ = 0;
  const HostTimes& host_;
  MemoryCurve* curve_;      // the memory curve to fill, or nullptr
  ReplayMoments* moments_;  // what is noted for other classes of ranks, or nullptr
  bool plays_ = false;      // whether steps are being replayed, rather than what is allocated before the first one
  std::uint32_t slot_ = 0;
  TaskId visited_ = 0;
  TaskId first_ = 0;       // the first task of the class of ranks
  TaskId behind_ = kNone;  // arguments of HostTimes::now for the visited task
  bool checked_ = false;
  bool waits_for_loss_ = false;  // whether the host, before the update, waits until the device has come to it
  HostLag lag_;
  Picoseconds clock_ = 0;   // time of the latest task, from the start of the step
  std::int64_t calls_ = 0;  // number of calls of cudaMalloc and cudaFree in the last replayed step
  TaskId update_ = 0;
  // Peak of the reserved bytes until the latest update began.
  Bytes reserved_before_ = 0;
  LaunchQueue queue_;
  Bytes backward_workspace_;  // bytes that the first product of backward takes for good; 0: it has taken them
};

}  // namespace

SlotMemory replay_slot(const Plan& plan, const Trace& trace, const MemoryOptions& options,
                       const std::vector<std::uint32_t>& frames, const HostTimes& host, PlanBuffers& buffers,
                       MemoryCurve* curve, ReplayMoments* moments) {
  Replay replay(plan, trace, options, buffers, frames, host, curve, moments);
  return replay.run(plan.classes[host.slot()], frames);
}

}  // namespace orrery
