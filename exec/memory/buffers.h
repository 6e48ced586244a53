#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "exec/memory/caching_memory.h"
#include "exec/memory/disk_store.h"
#include "exec/memory/rank.h"

namespace orrery {

// An operand with its address: what a kernel is launched on. bytes: to the end of what it names.
struct Argument {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  Bytes width = 4;  // of an element of a flat buffer
  Bytes row = 0;    // of a buffer whose rows are counted at run time
  Operand operand;
  DiskStore* disk = nullptr;  // of a buffer on disk, which has no address
  std::int64_t at = 0;        // in it
};

// A task as it is handed to a lane.
struct Launch {
  TaskId task = 0;
  std::vector<Argument> arguments;           // in the order of the op's operands
  std::vector<TaskId> after;                 // tasks that last used memory this one reuses on another lane
  std::vector<std::span<std::byte>> zeroed;  // what must hold zeros before: sums of gradients, first moments
};

void clear_on_host(std::span<std::byte> bytes);

// The buffers of one rank: which memory each holds now. Taken and returned in issue order, as a caching allocator's
// clients do: what the compute lane or a collective returns may be taken again at once, because lanes are in order;
// another lane that takes it must wait for its last user (Launch::after). What has been sent comes back when it has
// arrived. Streams of FSDP (gather, reduce, replicate) have pools of their own, whose blocks come back when their last
// user has completed. Buffers beyond the device have the host's memory and a disk of their own.
class Buffers {
 public:
  // clear: sets memory to zeros, at once. workspace: bytes that the rank's kernels keep for themselves, taken first.
  // host: where the host's memory comes from.
  Buffers(const Rank& rank, CachingMemory& memory,
          const std::function<void(std::span<std::byte>)>& clear = clear_on_host, Bytes workspace = 0,
          SegmentSource host = host_segments());

  // Takes what the task allocates, finds addresses, returns what it frees. completed(t): whether t has ended.
  template <class Completed>
  Launch issue(TaskId task, const Completed& completed) {
    collect(completed);
    return issue(task);
  }

  // The numbers of rows that a frame's runtime sizes have turned out to be.
  void set_sizes(std::uint32_t frame, std::vector<std::int64_t> sizes) { sizes_[frame] = std::move(sizes); }
  const std::map<std::uint32_t, std::vector<std::int64_t>>& sizes() const { return sizes_; }

  // Address of a state's buffer that stays; nullptr where it has no bytes, lies on disk, or has not appeared yet.
  std::byte* state(std::uint32_t frame, std::uint16_t slot) const { return held_[index(frame, slot)].data; }

  // A state's buffer wherever it lies: whether it is there, and bytes of it from `first` on.
  bool has_state(std::uint32_t frame, std::uint16_t slot) const;
  void write_state(std::uint32_t frame, std::uint16_t slot, std::int64_t first, std::span<const std::byte> from) const;
  // False where it lies on the device, which only its own copies reach.
  bool read_state(std::uint32_t frame, std::uint16_t slot, std::int64_t first, std::span<std::byte> to) const;

  // A state's buffer that is there from now on, also one that else first appears at the first update.
  void hold_state(std::uint32_t frame, std::uint16_t slot);

  const MemoryUse& host_use() const { return host_.use(); }
  Bytes disk_use() const { return disk_.taken(); }

  std::span<std::byte> workspace() const { return workspace_; }

  const std::array<Bytes, kCategories>& at_peak() const { return at_peak_; }
  TaskId peak_task() const { return peak_task_; }

  // Nothing is pending between steps.
  void end_step();
  // What does not outlive a step is given back: the step begins anew. Nothing runs.
  void abandon_step();

 private:
  struct Held {
    std::byte* data = nullptr;
    int pool = 0;
    std::int64_t at = -1;  // on disk

    bool empty() const { return data == nullptr && at < 0; }
  };
  struct Returned {
    std::byte* block;
    TaskId after;
    bool host;
  };
  struct Used {
    std::byte *begin, *end;
    TaskId task;
  };

  std::size_t index(std::uint32_t frame, std::uint16_t slot) const {
    return rank_.plan.frames[frame].first_buffer + slot;
  }
  const Slot& slot_of(std::uint32_t frame, std::uint16_t slot) const {
    return rank_.plan.blocks[rank_.plan.frames[frame].block].slots[slot];
  }
  Launch issue(TaskId task);
  // Bytes of a row of a buffer that is counted at run time, and of all of it.
  Bytes row_of(std::uint32_t frame, const Slot& slot) const;
  Bytes bytes_of(std::uint32_t frame, const Slot& slot) const;
  template <class Completed>
  void collect(const Completed& completed) {
    std::size_t kept = 0;
    for (const Returned& r : returned_) {
      if (completed(r.after))
        (r.host ? host_ : memory_).free(r.block);
      else
        returned_[kept++] = r;
    }
    returned_.resize(kept);
    std::erase_if(used_, [&](const Used& u) { return completed(u.task); });
  }
  void take(std::uint32_t frame, const Operand& operand, TaskId task, Launch& launch);
  bool take_beyond(const Slot& what, Held& held);
  void cut_arena(std::uint32_t frame, std::uint16_t slot);
  void give(std::uint32_t frame, const Operand& operand, TaskId task);
  void exchange(TaskId task);
  void count(Category category, Bytes bytes);
  void count_peak(TaskId task);
  Argument resolve(std::uint32_t frame, const Operand& operand) const;
  void wait_for_users(std::byte* block, Bytes size, TaskId task, Launch& launch) const;

  const Rank& rank_;
  CachingMemory& memory_;
  CachingMemory host_;
  mutable DiskStore disk_;
  bool one_lane_ = true;
  std::span<std::byte> workspace_;
  std::map<std::uint32_t, std::vector<std::int64_t>> sizes_;  // by frame
  std::vector<Held> held_;                                    // by buffer
  std::vector<Returned> returned_;                            // to other lanes' pools, not completed yet
  std::vector<std::byte*> cells_;                             // of the arena, those that are free
  std::vector<Used> used_;                                    // memory returned at once, whose last user may still run
  std::array<Bytes, kCategories> now_{}, at_peak_{};
  TaskId peak_task_ = kNone;
  Bytes peak_ = 0;
};

}  // namespace orrery
