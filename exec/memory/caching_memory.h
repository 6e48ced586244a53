#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "models/base/units.h"

namespace orrery {

// The functions by which the allocator gets memory segments and gives them back: cudaMalloc and cudaFree, or the host's
// mmap and munmap.
struct SegmentSource {
  std::function<std::byte*(Bytes)> take;  // allocates a memory segment; nullptr if there is not enough memory
  std::function<void(std::byte*, Bytes)> give;
};
SegmentSource host_segments();

// Bytes of the blocks that callers use (allocated), and of the segments taken from the SegmentSource (reserved).
struct MemoryUse {
  Bytes allocated = 0, peak_allocated = 0;
  Bytes reserved = 0, peak_reserved = 0;
};

// A caching allocator of real memory, like those of frameworks: freed blocks stay in their segments, are split and
// joined, and every pool (stream) has separate segments. Sizes are rounded to 512 bytes; small requests (up to 1 MiB)
// share segments of 2 MiB, requests below 10 MiB share segments of 20 MiB, and larger requests get a segment each,
// rounded to 2 MiB (the rules of PyTorch's allocator, so that the counts can be compared). Not thread safe. Throws
// Error when there is no memory left.
class CachingMemory {
 public:
  // drain: waits until no task is running. It is called when memory has run out, before unused segments are given back,
  // because tasks issued earlier may still use blocks that count as free.
  explicit CachingMemory(SegmentSource source, std::function<void()> drain = {})
      : source_(std::move(source)), drain_(std::move(drain)) {}
  ~CachingMemory();
  CachingMemory(const CachingMemory&) = delete;
  CachingMemory& operator=(const CachingMemory&) = delete;

  std::byte* allocate(Bytes bytes, int pool);
  void free(std::byte* block);
  // Called when the owner of a memory block no longer needs it but the device still uses it: the block no longer counts
  // as allocated, and is passed to free() later. (PyTorch's allocator, too, does not count a block that only other
  // streams still use.)
  void retire(std::byte* block);
  Bytes size_of(std::byte* block) const;  // the number of bytes of a block, after rounding
  const MemoryUse& use() const { return use_; }

 private:
  struct Block {
    Bytes size = 0;
    int pool = 0;
    bool small = false;
    bool free = true;
    bool retired = false;
    std::byte* previous = nullptr;  // neighbouring blocks in the segment
    std::byte* next = nullptr;
    bool segment_start = false;
  };
  // Free blocks of a pool, ordered by size, then address.
  using Free = std::map<std::pair<Bytes, std::byte*>, bool>;

  std::byte* new_segment(Bytes bytes, int pool, bool small);
  void split(std::byte* at, Bytes bytes);
  std::byte* join(std::byte* at);
  void release_unused();
  Free& free_of(const Block& b) { return free_[{b.pool, b.small}]; }

  SegmentSource source_;
  std::function<void()> drain_;
  std::map<std::byte*, Block> blocks_;
  std::map<std::pair<int, bool>, Free> free_;
  MemoryUse use_;
};

}  // namespace orrery
