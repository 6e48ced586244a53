#include "exec/memory/caching_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {
namespace {

constexpr Bytes kRounding = 512;
constexpr Bytes kMiB = 1 << 20;
constexpr Bytes kSmall = kMiB;  // largest size of a request that counts as small
constexpr Bytes kSmallSegment = 2 * kMiB;
constexpr Bytes kMedium = 10 * kMiB;  // requests below this size share memory segments
constexpr Bytes kMediumSegment = 20 * kMiB;

Bytes round_up(Bytes bytes, Bytes to) { return ceil_div(bytes, to) * to; }

Bytes segment_bytes(Bytes bytes) {
  if (bytes <= kSmall) return kSmallSegment;
  return bytes < kMedium ? kMediumSegment : round_up(bytes, 2 * kMiB);
}

}  // namespace

SegmentSource host_segments() {
  return {[](Bytes bytes) -> std::byte* {
            void* at = ::mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
          },
          [](std::byte* at, Bytes bytes) { ::munmap(at, static_cast<std::size_t>(bytes)); }};
}

CachingMemory::~CachingMemory() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    std::byte* start = it->first;
    Bytes bytes = 0;
    do {
      bytes += it->second.size;
      ++it;
    } while (it != blocks_.end() && !it->second.segment_start);
    source_.give(start, bytes);
  }
}

std::byte* CachingMemory::new_segment(Bytes bytes, int pool, bool small) {
  const Bytes size = segment_bytes(bytes);
  std::byte* at = source_.take(size);
  if (at == nullptr) {
    if (drain_) drain_();
    release_unused();
    at = source_.take(size);
  }
  if (at == nullptr) {
    throw Error(fmt::format("out of memory: no {} MiB beside {} MiB allocated and {} MiB reserved", size / kMiB,
                            use_.allocated / kMiB, use_.reserved / kMiB),
                1);
  }
  blocks_[at] = {.size = size, .pool = pool, .small = small, .segment_start = true};
  use_.reserved += size;
  use_.peak_reserved = std::max(use_.peak_reserved, use_.reserved);
  return at;
}

// Splits a memory block that is larger than requested, if the rest is large enough to be useful.
void CachingMemory::split(std::byte* at, Bytes bytes) {
  Block& block = blocks_.at(at);
  const Bytes rest = block.size - bytes;
  if (rest < (block.small ? kRounding : kSmall + 1)) return;
  std::byte* next = at + bytes;
  blocks_[next] = {.size = rest, .pool = block.pool, .small = block.small, .previous = at, .next = block.next};
  if (block.next != nullptr) blocks_.at(block.next).previous = next;
  block.next = next;
  block.size = bytes;
  free_of(block)[{rest, next}] = true;
}

std::byte* CachingMemory::allocate(Bytes requested, int pool) {
  const Bytes bytes = std::max(kRounding, round_up(requested, kRounding));
  const bool small = bytes <= kSmall;
  Free& free = free_[{pool, small}];
  const auto best = free.lower_bound({bytes, nullptr});
  std::byte* at = nullptr;
  if (best != free.end()) {
    at = best->first.second;
    free.erase(best);
  } else {
    at = new_segment(bytes, pool, small);
  }
  split(at, bytes);
  Block& block = blocks_.at(at);
  block.free = false;
  use_.allocated += block.size;
  use_.peak_allocated = std::max(use_.peak_allocated, use_.allocated);
  return at;
}

std::byte* CachingMemory::join(std::byte* at) {
  Block& block = blocks_.at(at);
  if (block.next != nullptr && blocks_.at(block.next).free) {
    std::byte* next = block.next;
    const Block other = blocks_.at(next);
    free_of(other).erase({other.size, next});
    block.size += other.size;
    block.next = other.next;
    if (other.next != nullptr) blocks_.at(other.next).previous = at;
    blocks_.erase(next);
  }
  if (block.previous == nullptr || !blocks_.at(block.previous).free) return at;
  std::byte* before = block.previous;
  Block& other = blocks_.at(before);
  free_of(other).erase({other.size, before});
  other.size += block.size;
  other.next = block.next;
  if (block.next != nullptr) blocks_.at(block.next).previous = before;
  blocks_.erase(at);
  return before;
}

void CachingMemory::retire(std::byte* at) {
  Block& block = blocks_.at(at);
  if (!block.retired) use_.allocated -= block.size;
  block.retired = true;
}

void CachingMemory::free(std::byte* at) {
  retire(at);
  Block& block = blocks_.at(at);
  block.retired = false;
  block.free = true;
  std::byte* joined = join(at);
  const Block& whole = blocks_.at(joined);
  free_of(whole)[{whole.size, joined}] = true;
}

Bytes CachingMemory::size_of(std::byte* at) const { return blocks_.at(at).size; }

void CachingMemory::release_unused() {
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    const auto [at, block] = *it;
    const bool whole = block.free && block.segment_start && block.next == nullptr;
    if (!whole) {
      ++it;
      continue;
    }
    free_of(block).erase({block.size, at});
    use_.reserved -= block.size;
    it = blocks_.erase(it);
    source_.give(at, block.size);
  }
}

}  // namespace orrery
