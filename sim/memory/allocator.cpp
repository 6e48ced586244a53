#include "sim/memory/allocator.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace orrery {
namespace {

// The constants of PyTorch's CUDACachingAllocator.cpp: kMinBlockSize, kSmallSize, kSmallBuffer, kMinLargeAlloc,
// kLargeBuffer, kRoundLarge.
constexpr Bytes kMebibyte = 1 << 20;
constexpr Bytes kGranule = 512;
constexpr Bytes kLargestSmall = kMebibyte;
constexpr Bytes kSmallSegment = 2 * kMebibyte;
constexpr Bytes kSharedSegmentBelow = 10 * kMebibyte;
constexpr Bytes kSharedSegment = 20 * kMebibyte;
constexpr Bytes kSegmentRounding = 2 * kMebibyte;

constexpr Bytes round_up(Bytes bytes, Bytes unit) { return ceil_div(bytes, unit) * unit; }
constexpr bool is_large(std::uint32_t pool) { return pool % 2 != 0; }

// PyTorch's get_allocation_size: the bytes of the segment to allocate for a block of this size.
Bytes segment_size(Bytes block) {
  if (block <= kLargestSmall) return kSmallSegment;
  if (block < kSharedSegmentBelow) return kSharedSegment;
  return round_up(block, kSegmentRounding);
}

constexpr auto later = [](const auto& a, const auto& b) { return a.until > b.until; };

}  // namespace

CachingAllocator::CachingAllocator(AllocatorOptions options) : options_(options) {}

std::optional<BlockId> CachingAllocator::malloc(Bytes bytes, int stream, Picoseconds now) {
  assert(bytes > 0 && stream >= 0);
  process_events(now);
  const Bytes size = round_up(bytes, kGranule);
  const std::uint32_t pool = 2 * static_cast<std::uint32_t>(stream) + (size > kLargestSmall);
  if (pool >= pools_.size()) pools_.resize(pool + 1);

  BlockId id = find_free(pool, size);
  if (id != kNone) {
    remove(id);
    if (!options_.expandable_segments && split(blocks_[id])) stats_.inactive_split.add(-blocks_[id].size);
  } else {
    id = grow(pool, size);
    if (id == kNone) return std::nullopt;
  }
  cut(id, size);

  Block& block = blocks_[id];
  block.state = State::allocated;
  block.requested = bytes;
  stats_.allocated.add(block.size);
  stats_.active.add(block.size);
  stats_.requested.add(bytes);
  return id;
}

void CachingAllocator::free(BlockId id) {
  assert(blocks_[id].state == State::allocated);
  stats_.allocated.add(-blocks_[id].size);
  release(id);
}

void CachingAllocator::free_after(BlockId id, Picoseconds until) {
  assert(blocks_[id].state == State::allocated);
  stats_.allocated.add(-blocks_[id].size);
  blocks_[id].state = State::pending;
  events_.push_back({until, id});
  std::push_heap(events_.begin(), events_.end(), later);
}

void CachingAllocator::process_events(Picoseconds now) {
  while (!events_.empty() && events_.front().until <= now) {
    const BlockId id = events_.front().block;
    std::pop_heap(events_.begin(), events_.end(), later);
    events_.pop_back();
    release(id);
  }
}

// PyTorch's release_cached_blocks: completely unused segments go back to the device, expandable segments page by page.
void CachingAllocator::empty_cache() {
  for (const Event& event : events_) stats_.synchronized_until = std::max(stats_.synchronized_until, event.until);
  process_events(std::numeric_limits<Picoseconds>::max());
  std::vector<BlockId> unused;
  for (const Pool& pool : pools_) {
    for (const FreeBlock* b = pool.free.at_least(0); b; b = pool.free.after(*b)) {
      if (options_.expandable_segments || !split(blocks_[b->id])) unused.push_back(b->id);
    }
  }
  for (const BlockId id : unused) {
    if (options_.expandable_segments) {
      unmap(id);
    } else {
      give_to_device(blocks_[id].size);
      remove(id);
      spare_.push_back(id);
    }
  }
}

void CachingAllocator::reset_peaks() {
  for (Gauge* g : {&stats_.allocated, &stats_.requested, &stats_.active, &stats_.reserved, &stats_.inactive_split}) {
    g->peak = g->now;
  }
}

// Bytes of the pages by which an expandable segment of a pool grows.
Bytes CachingAllocator::page(std::uint32_t pool) const { return is_large(pool) ? kSharedSegment : kSmallSegment; }

BlockId CachingAllocator::new_block(Bytes address, Bytes size, std::uint32_t pool, State state) {
  BlockId id = static_cast<BlockId>(blocks_.size());
  if (spare_.empty()) {
    blocks_.emplace_back();
  } else {
    id = spare_.back();
    spare_.pop_back();
  }
  blocks_[id] = {address, size, 0, kNone, kNone, pool, state};
  return id;
}

// Puts the block `right` between `left` and the block that follows `left` in its segment.
void CachingAllocator::link_after(BlockId left, BlockId right) {
  const BlockId next = blocks_[left].next;
  blocks_[right].prev = left;
  blocks_[right].next = next;
  blocks_[left].next = right;
  if (next != kNone) blocks_[next].prev = right;
}

// PyTorch's get_free_block: finds the smallest free block of at least `size` bytes. With expandable segments a block
// can grow into the unmapped pages behind it; as long as the next larger block is smaller when these pages are counted
// for both, it is taken instead.
BlockId CachingAllocator::find_free(std::uint32_t pool, Bytes size) const {
  const FreeSet& set = pools_[pool].free;
  const FreeBlock* best = set.at_least(size);
  if (!best) return kNone;
  if (!options_.expandable_segments) return best->id;
  const auto reach = [&](const FreeBlock& b) {
    const BlockId next = blocks_[b.id].next;
    return b.size + (next != kNone && blocks_[next].state == State::unmapped ? blocks_[next].size : 0);
  };
  for (const FreeBlock* b = set.after(*best); b && reach(*b) < reach(*best); b = set.after(*b)) best = b;
  return best->id;
}

// PyTorch's alloc_block: allocates a new segment; if it does not fit, releases cached blocks and tries once more.
BlockId CachingAllocator::grow(std::uint32_t pool, Bytes size) {
  const auto once = [&] { return options_.expandable_segments ? expand(pool, size) : new_segment(pool, size); };
  BlockId id = once();
  if (id != kNone) return id;
  ++stats_.retries;
  empty_cache();
  id = once();
  if (id == kNone) ++stats_.out_of_memory;
  return id;
}

BlockId CachingAllocator::new_segment(std::uint32_t pool, Bytes size) {
  const Bytes bytes = segment_size(size);
  if (!take_from_device(bytes)) return kNone;
  const BlockId id = new_block(next_address_, bytes, pool, State::free);
  next_address_ += bytes;
  return id;
}

// PyTorch's try_allocate_expandable_block: maps pages in the lowest address range that is long enough. If the device
// runs out of memory meanwhile, the pages mapped so far stay mapped, and are free.
BlockId CachingAllocator::expand(std::uint32_t pool, Bytes size) {
  BlockId id = find_range(pool, size);
  if (blocks_[id].state == State::unmapped && !map(id, std::min(size, blocks_[id].size))) return kNone;
  while (blocks_[id].size < size) {
    const BlockId next = blocks_[id].next;
    if (!map(next, std::min(size - blocks_[id].size, blocks_[next].size))) return kNone;
    id = next;
  }
  remove(id);
  return id;
}

// PyTorch's find_expandable_block: finds the first of adjacent free or unmapped blocks that together have at least
// `size` bytes. If there are none it makes a new address range, 9/8 times as large as the device's memory.
BlockId CachingAllocator::find_range(std::uint32_t pool, Bytes size) {
  const auto usable = [&](BlockId id) {
    return id != kNone && (blocks_[id].state == State::free || blocks_[id].state == State::unmapped);
  };
  for (const BlockId unmapped : pools_[pool].unmapped) {
    const BlockId first = usable(blocks_[unmapped].prev) ? blocks_[unmapped].prev : unmapped;
    Bytes room = 0;
    for (BlockId id = first; room < size && usable(id); id = blocks_[id].next) room += blocks_[id].size;
    if (room >= size) return first;
  }
  const Bytes range = round_up(std::max(options_.capacity + options_.capacity / 8, size), page(pool));
  const BlockId id = new_block(round_up(next_address_, page(pool)), range, pool, State::unmapped);
  next_address_ = blocks_[id].address + range;
  insert(id);
  return id;
}

// PyTorch's map_block: maps the pages of the first bytes of an unmapped block, which becomes free and merges with its
// neighbours.
bool CachingAllocator::map(BlockId id, Bytes size) {
  const Bytes bytes = round_up(size, page(blocks_[id].pool));
  if (!take_from_device(bytes)) return false;
  remove(id);
  if (bytes < blocks_[id].size) {
    const BlockId rest =
        new_block(blocks_[id].address + bytes, blocks_[id].size - bytes, blocks_[id].pool, State::unmapped);
    blocks_[id].size = bytes;
    link_after(id, rest);
    insert(rest);
  }
  blocks_[id].state = State::free;
  merge(id, blocks_[id].prev);
  merge(id, blocks_[id].next);
  insert(id);
  return true;
}

// PyTorch's unmap_block: gives the complete pages inside a free block back to the device. An address range without
// mapped pages is dropped.
void CachingAllocator::unmap(BlockId id) {
  const std::uint32_t pool = blocks_[id].pool;
  const Bytes start = blocks_[id].address;
  const Bytes end = start + blocks_[id].size;
  const Bytes first = round_up(start, page(pool));
  const Bytes last = end / page(pool) * page(pool);
  if (first >= last) return;
  remove(id);
  if (first > start) {
    const BlockId before = new_block(start, first - start, pool, State::free);
    if (blocks_[id].prev != kNone) {
      link_after(blocks_[id].prev, before);
    } else {
      blocks_[before].next = id;
      blocks_[id].prev = before;
    }
    insert(before);
  }
  if (last < end) {
    const BlockId after = new_block(last, end - last, pool, State::free);
    link_after(id, after);
    insert(after);
  }
  blocks_[id].address = first;
  blocks_[id].size = last - first;
  blocks_[id].state = State::unmapped;
  give_to_device(last - first);
  merge(id, blocks_[id].prev);
  merge(id, blocks_[id].next);
  if (split(blocks_[id])) {
    insert(id);
  } else {
    spare_.push_back(id);
  }
}

// PyTorch's should_split and alloc_found_block: cuts a block to `size` bytes. The remainder becomes a free block of its
// own, unless it is so small that it stays in the block.
void CachingAllocator::cut(BlockId id, Bytes size) {
  const Block block = blocks_[id];
  const Bytes rest = block.size - size;
  const bool worth = options_.expandable_segments || !is_large(block.pool) ? rest >= kGranule : rest > kLargestSmall;
  if (!worth) return;
  const BlockId remainder = new_block(block.address + size, rest, block.pool, State::free);
  blocks_[id].size = size;
  link_after(id, remainder);
  insert(remainder);
  if (!options_.expandable_segments) stats_.inactive_split.add(rest);
}

// PyTorch's free_block: marks a block as free, and merges it with free neighbours.
void CachingAllocator::release(BlockId id) {
  stats_.active.add(-blocks_[id].size);
  stats_.requested.add(-blocks_[id].requested);
  blocks_[id].state = State::free;
  Bytes inactive = blocks_[id].size;
  merge(id, blocks_[id].prev);
  merge(id, blocks_[id].next);
  insert(id);
  // A completely free segment does not count as inactive split memory (memory_stats()).
  if (!split(blocks_[id])) inactive -= blocks_[id].size;
  if (!options_.expandable_segments) stats_.inactive_split.add(inactive);
}

// PyTorch's try_merge_blocks: joins a block with a neighbour of the same state, if it has one.
void CachingAllocator::merge(BlockId id, BlockId neighbour) {
  if (neighbour == kNone || blocks_[neighbour].state != blocks_[id].state) return;
  remove(neighbour);
  Block& block = blocks_[id];
  const Block& other = blocks_[neighbour];
  if (block.prev == neighbour) {
    block.address = other.address;
    block.prev = other.prev;
    if (other.prev != kNone) blocks_[other.prev].next = id;
  } else {
    block.next = other.next;
    if (other.next != kNone) blocks_[other.next].prev = id;
  }
  block.size += other.size;
  spare_.push_back(neighbour);
}

void CachingAllocator::insert(BlockId id) {
  const Block& block = blocks_[id];
  Pool& pool = pools_[block.pool];
  if (block.state == State::free) {
    pool.free.insert({block.size, block.address, id});
  } else {
    const auto lower = [&](BlockId a, BlockId b) { return blocks_[a].address < blocks_[b].address; };
    pool.unmapped.insert(std::lower_bound(pool.unmapped.begin(), pool.unmapped.end(), id, lower), id);
  }
}

void CachingAllocator::remove(BlockId id) {
  const Block& block = blocks_[id];
  Pool& pool = pools_[block.pool];
  if (block.state == State::free) {
    pool.free.erase(block.size, block.address);
  } else {
    pool.unmapped.erase(std::find(pool.unmapped.begin(), pool.unmapped.end(), id));
  }
}

bool CachingAllocator::take_from_device(Bytes bytes) {
  if (stats_.reserved.now + bytes > options_.capacity) return false;
  ++stats_.device_allocations;
  stats_.reserved.add(bytes);
  return true;
}

void CachingAllocator::give_to_device(Bytes bytes) {
  ++stats_.device_frees;
  stats_.reserved.add(-bytes);
}

}  // namespace orrery
