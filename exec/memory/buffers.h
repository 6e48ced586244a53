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

// An operand of a task with its address, as kernels get it. bytes: number of bytes from `data` to the end of the
// operand.
struct Argument {
  std::byte* data = nullptr;
  Bytes bytes = 0;
  Bytes width = 4;  // number of bytes of an element of a flat buffer
  Bytes row = 0;    // number of bytes of a row, for a buffer whose number of rows is known only at run time
  Operand operand;
  DiskStore* disk = nullptr;  // set for a buffer on disk, which has no address
  std::int64_t at = 0;        // offset in bytes of the operand in the disk file
};

// A task with the addresses of its operands, as it is submitted to a lane (a queue of tasks).
struct Launch {
  TaskId task = 0;
  std::vector<Argument> arguments;  // operands with addresses, in the order of the op's operands
  // tasks of other lanes (queues of tasks) that must end before this task runs, because it reuses memory that they used
  std::vector<TaskId> after;
  // memory to clear before the task runs: gradient sums, and in the first update the optimizer's moments
  std::vector<std::span<std::byte>> zeroed;
};

void clear_on_host(std::span<std::byte> bytes);

// The buffers of one rank and the memory that each buffer has at present. Memory is allocated and freed in the order in
// which tasks are issued, as in PyTorch's caching allocator. Memory that the compute lane or a collective frees may be
// allocated again immediately, because lanes run in order; a task of another lane that gets this memory must wait for
// the last task that used it (Launch::after). The memory of a sent buffer is freed when the transfer has ended. The
// FSDP streams (gather, reduce, replicate) have separate pools, whose blocks are freed when their last user has ended.
// Offloaded buffers are in host memory and on disk.
class Buffers {
 public:
  // clear: sets memory to zeros before it returns. workspace: number of bytes, allocated first, that the rank's kernels
  // use as scratch memory. host: source of host memory.
  Buffers(const Rank& rank, CachingMemory& memory,
          const std::function<void(std::span<std::byte>)>& clear = clear_on_host, Bytes workspace = 0,
          SegmentSource host = host_segments());

  // Allocates the buffers that the task is the first to use, finds the addresses of the operands, and frees the buffers
  // that the task is the last to use. completed(t): whether task t has ended.
  template <class Completed>
  Launch issue(TaskId task, const Completed& completed) {
    collect(completed);
    return issue(task);
  }

  // Sets the numbers of rows of those buffers of a frame (a block's buffers for one micro-batch) whose numbers of rows
  // are known only at run time.
  void set_sizes(std::uint32_t frame, std::vector<std::int64_t> sizes) { sizes_[frame] = std::move(sizes); }
  const std::map<std::uint32_t, std::vector<std::int64_t>>& sizes() const { return sizes_; }

  // Returns the address of a buffer of weights, gradients or optimizer states; nullptr if it is empty, on disk, or not
  // allocated yet.
  std::byte* state(std::uint32_t frame, std::uint16_t slot) const { return held_[index(frame, slot)].data; }

  // These functions access, from byte `first` on, a buffer of weights, gradients or optimizer states in any memory
  // tier.
  bool has_state(std::uint32_t frame, std::uint16_t slot) const;
  void write_state(std::uint32_t frame, std::uint16_t slot, std::int64_t first, std::span<const std::byte> from) const;
  // Reads a part of a buffer. Returns false if the buffer is in device memory, which only the device's own memcpy can
  // read.
  bool read_state(std::uint32_t frame, std::uint16_t slot, std::int64_t first, std::span<std::byte> to) const;

  // Allocates a buffer of weights, gradients or optimizer states now, even one that would otherwise be allocated at the
  // first optimizer update.
  void hold_state(std::uint32_t frame, std::uint16_t slot);

  // Returns the largest number of bytes that buffers have held in a memory tier other than the device (host or disks).
  Bytes peak_in(MemoryTier tier) const;

  std::span<std::byte> workspace() const { return workspace_; }

  const std::array<Bytes, kCategories>& at_peak() const { return at_peak_; }
  TaskId peak_task() const { return peak_task_; }

  // Ends a step: frees the memory that was waiting for its last task to end.
  void end_step();
  // Frees all buffers that are not kept between steps, so that the step can begin again. No task may be running.
  void abandon_step();

 private:
  struct Held {
    std::byte* data = nullptr;
    int pool = 0;
    std::int64_t at = -1;  // offset in bytes in the file of its memory tier; -1: not on disk

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
  const BlockBuffer& slot_of(std::uint32_t frame, std::uint16_t slot) const {
    return rank_.plan.blocks[rank_.plan.frames[frame].block].buffers[slot];
  }
  DiskStore& store_of(const BlockBuffer& what) const { return stores_[orrery::index_of(what.home)]; }
  Launch issue(TaskId task);
  // Returns the bytes of one row (row_of) or of all rows (bytes_of) of a buffer whose number of rows is known only at
  // run time.
  Bytes row_of(std::uint32_t frame, const BlockBuffer& slot) const;
  Bytes bytes_of(std::uint32_t frame, const BlockBuffer& slot) const;
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
  bool take_beyond(const BlockBuffer& what, Held& held);
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
  // for each memory tier other than device and host (disks), the file that holds its buffers
  mutable std::array<DiskStore, kTiers> stores_;
  bool one_lane_ = true;
  std::span<std::byte> workspace_;
  // for each frame (a block's buffers for one micro-batch), the numbers of rows that are known only at run time
  std::map<std::uint32_t, std::vector<std::int64_t>> sizes_;
  std::vector<Held> held_;          // for each buffer (by id), its memory
  std::vector<Returned> returned_;  // memory that is freed once the last task that uses it has ended
  // addresses of the free cells of the arena: contiguous memory, allocated before the first step, that is cut into
  // equal cells of one buffer each
  std::vector<std::byte*> cells_;
  // Memory that is already freed although the last task that used it may still be running.
  std::vector<Used> used_;
  std::array<Bytes, kCategories> now_{}, at_peak_{};
  TaskId peak_task_ = kNone;
  Bytes peak_ = 0;
};

}  // namespace orrery
