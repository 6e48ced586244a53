#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/base/units.h"
#include "sim/memory/free_set.h"

namespace orrery {

using BlockId = std::uint32_t;

struct AllocatorOptions {
  // the most bytes that all segments may have: the device's memory less the CUDA context and libraries
  Bytes capacity = 0;
  // whether segments can grow page by page (PYTORCH_ALLOC_CONF=expandable_segments:True)
  bool expandable_segments = false;
};

struct Gauge {
  Bytes now = 0;
  Bytes peak = 0;

  void add(Bytes bytes) {
    now += bytes;
    if (now > peak) peak = now;
  }
};

// The figures of torch.cuda.memory_stats(), in bytes. Always reserved >= active >= allocated, and active >= requested.
struct AllocatorStats {
  Gauge allocated;       // bytes of blocks handed out, including rounding and remainders that are not cut off
  Gauge requested;       // bytes that callers asked for, of blocks handed out or waiting for events
  Gauge active;          // bytes of blocks that are handed out or that wait for events
  Gauge reserved;        // bytes of segments, or of the mapped pages of expandable segments
  Gauge inactive_split;  // free bytes in segments that are partly in use; expandable segments are not counted
  // number of calls of cudaMalloc, and of mappings of pages to expandable segments
  std::int64_t device_allocations = 0;
  std::int64_t device_frees = 0;
  // number of times that cached blocks were given back because a new segment did not fit in the device's memory
  std::int64_t retries = 0;
  // Number of times that a new segment did not fit in the device's memory although cached blocks had been given back.
  std::int64_t out_of_memory = 0;
  Picoseconds synchronized_until = 0;  // latest of the event times for which empty_cache() had to wait
};

// A replay of PyTorch's CUDA caching allocator without a device: addresses are numbers that only grow. Sizes of blocks
// are rounded up to 512 bytes. Blocks are cut from segments, which have 2 MiB (for blocks up to 1 MiB), 20 MiB (below
// 10 MiB) or the block's size rounded up to 2 MiB. A request gets the smallest free block of its own stream that is
// large enough, and among equals the one of lowest address. Freed blocks merge with free neighbours and stay cached
// until a new segment does not fit. With expandable segments, each stream and pool has one range of addresses whose
// pages (2 MiB or 20 MiB) are mapped as it grows. Options that are off by default (max_split_size_mb,
// roundup_power2_divisions, garbage_collection_threshold) and the private pools of CUDA graphs are not replayed. The
// allocator has no clock; callers pass the time. Source: c10/cuda/CUDACachingAllocator.cpp of PyTorch 2.x, whose
// functions are named beside each step in allocator.cpp.
class CachingAllocator {
 public:
  explicit CachingAllocator(AllocatorOptions options);

  // Allocates a block of `bytes` > 0 on a stream (small numbers from 0). Events up to `now` count as completed. Returns
  // nullopt when out of memory; in this case every unused segment has been given back to the device, and nothing else
  // has changed.
  std::optional<BlockId> malloc(Bytes bytes, int stream, Picoseconds now = 0);

  // Frees a block. A later malloc may return the same id.
  void free(BlockId id);

  // Frees a block that other streams use (record_stream): the block stays active until a malloc() after the time
  // `until`, at which the last event of the other streams completes.
  void free_after(BlockId id, Picoseconds until);

  // Frees the blocks for which free_after() was called and whose events have completed by `now`. Every malloc() does
  // this first.
  void process_events(Picoseconds now);

  // Does what torch.cuda.empty_cache() does: waits for events and gives unused segments, or pages, back to the device.
  void empty_cache();

  void reset_peaks();

  // Sets the most bytes that all segments together may have from now on.
  void set_capacity(Bytes capacity) { options_.capacity = capacity; }

  const AllocatorStats& stats() const { return stats_; }
  Bytes address(BlockId id) const { return blocks_[id].address; }
  Bytes size(BlockId id) const { return blocks_[id].size; }

 private:
  static constexpr BlockId kNone = ~BlockId{0};

  enum class State : std::uint8_t { free, allocated, pending, unmapped };

  struct Block {
    Bytes address = 0;
    Bytes size = 0;
    Bytes requested = 0;
    BlockId prev = kNone;  // neighbours in the same segment: the block before (prev) and the one behind (next)
    BlockId next = kNone;
    std::uint32_t pool = 0;  // index of the allocator's pool: 2 x stream, plus 1 if for large blocks
    State state = State::free;
  };

  struct Pool {
    FreeSet free;
    std::vector<BlockId> unmapped;  // ranges of addresses without mapped pages, in the order of addresses
  };

  struct Event {
    Picoseconds until;
    BlockId block;
  };

  Bytes page(std::uint32_t pool) const;
  bool split(const Block& block) const { return block.prev != kNone || block.next != kNone; }
  BlockId new_block(Bytes address, Bytes size, std::uint32_t pool, State state);
  void link_after(BlockId left, BlockId right);
  BlockId find_free(std::uint32_t pool, Bytes size) const;
  BlockId grow(std::uint32_t pool, Bytes size);
  BlockId new_segment(std::uint32_t pool, Bytes size);
  BlockId expand(std::uint32_t pool, Bytes size);
  BlockId find_range(std::uint32_t pool, Bytes size);
  bool map(BlockId id, Bytes size);
  void unmap(BlockId id);
  void cut(BlockId id, Bytes size);
  void release(BlockId id);
  void merge(BlockId id, BlockId neighbour);
  void insert(BlockId id);
  void remove(BlockId id);
  bool take_from_device(Bytes bytes);
  void give_to_device(Bytes bytes);

  AllocatorOptions options_;
  AllocatorStats stats_;
  std::vector<Block> blocks_;
  std::vector<BlockId> spare_;  // unused indices in blocks_
  std::vector<Pool> pools_;
  std::vector<Event> events_;  // events that blocks wait for, as a heap with the earliest first
  Bytes next_address_ = 0;
};

}  // namespace orrery
