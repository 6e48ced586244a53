#include "sim/memory/allocator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/random_bits.h"
#include "tests/sim/allocator_reference.h"

namespace orrery {
namespace {

constexpr Bytes kKiB = 1024;
constexpr Bytes kBytesOfGiB = 1024 * kMiB;

CachingAllocator plain(Bytes capacity = 64 * kBytesOfGiB) { return CachingAllocator({capacity, false}); }
CachingAllocator expandable(Bytes capacity = 64 * kBytesOfGiB) { return CachingAllocator({capacity, true}); }

// --- The rules one by one --------------------------------------------------------------------------------------------

struct FirstRequest {
  Bytes asked, block, segment;
};

class FirstRequests : public testing::TestWithParam<FirstRequest> {};

TEST_P(FirstRequests, AreRoundedAndOpenASegmentOfTheirClass) {
  const auto& [asked, block, segment] = GetParam();
  CachingAllocator a = plain();
  ASSERT_TRUE(a.malloc(asked, 0));
  EXPECT_EQ(a.stats().requested.now, asked);
  EXPECT_EQ(a.stats().allocated.now, block);
  EXPECT_EQ(a.stats().active.now, block);
  EXPECT_EQ(a.stats().reserved.now, segment);
  EXPECT_EQ(a.stats().inactive_split.now, segment - block);
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, FirstRequests,
    testing::Values(
        FirstRequest{1, 512, 2 * kMiB}, FirstRequest{512, 512, 2 * kMiB}, FirstRequest{513, 1024, 2 * kMiB},
        FirstRequest{100000, 100352, 2 * kMiB}, FirstRequest{kMiB, kMiB, 2 * kMiB},
        FirstRequest{kMiB + 1, kMiB + 512, 20 * kMiB}, FirstRequest{10 * kMiB - 512, 10 * kMiB - 512, 20 * kMiB},
        // From 10 MiB on a segment is the size rounded to 2 MiB, and at most 1 MiB of rest is not split off.
        FirstRequest{10 * kMiB - 511, 10 * kMiB, 10 * kMiB}, FirstRequest{10 * kMiB, 10 * kMiB, 10 * kMiB},
        FirstRequest{11 * kMiB, 12 * kMiB, 12 * kMiB}, FirstRequest{12 * kMiB + 1, 12 * kMiB + 512, 14 * kMiB},
        FirstRequest{11 * kMiB - 512, 11 * kMiB - 512, 12 * kMiB},
        FirstRequest{kBytesOfGiB, kBytesOfGiB, kBytesOfGiB}));

TEST(Allocator, SmallPoolSplitsAnyRestAndLargePoolAboveOneMiB) {
  CachingAllocator a = plain();
  const BlockId big = *a.malloc(30 * kMiB, 0);
  a.free(big);
  EXPECT_EQ(a.size(*a.malloc(29 * kMiB, 0)), 30 * kMiB);
  a = plain();
  a.free(*a.malloc(30 * kMiB, 0));
  EXPECT_EQ(a.size(*a.malloc(29 * kMiB - 512, 0)), 29 * kMiB - 512);
  a = plain();
  const BlockId first = *a.malloc(1024, 0);
  ASSERT_TRUE(a.malloc(512, 0));
  a.free(first);
  EXPECT_EQ(a.size(*a.malloc(512, 0)), 512);
}

TEST(Allocator, FreedNeighboursMergeInBothDirections) {
  CachingAllocator a = plain();
  std::vector<BlockId> blocks;
  for (int i = 0; i < 5; ++i) blocks.push_back(*a.malloc(4 * kMiB, 0));
  EXPECT_EQ(a.stats().reserved.now, 20 * kMiB);
  EXPECT_EQ(a.stats().inactive_split.now, 0);
  a.free(blocks[1]);
  a.free(blocks[3]);
  EXPECT_EQ(a.stats().inactive_split.now, 8 * kMiB);
  a.free(blocks[2]);
  EXPECT_EQ(a.address(*a.malloc(12 * kMiB, 0)), a.address(blocks[0]) + 4 * kMiB);
  EXPECT_EQ(a.stats().reserved.now, 20 * kMiB);
}

TEST(Allocator, InactiveSplitIsZeroWhenASegmentIsFreeAsAWhole) {
  CachingAllocator a = plain();
  const BlockId b = *a.malloc(2 * kMiB, 0);
  EXPECT_EQ(a.stats().inactive_split.now, 18 * kMiB);
  a.free(b);
  EXPECT_EQ(a.stats().inactive_split.now, 0);
  EXPECT_EQ(a.stats().inactive_split.peak, 18 * kMiB);
  EXPECT_EQ(a.stats().reserved.now, 20 * kMiB);
}

TEST(Allocator, BestFitIsTheSmallestThenTheLowest) {
  CachingAllocator a = plain();
  const BlockId x = *a.malloc(40 * kMiB, 0), y = *a.malloc(24 * kMiB, 0), z = *a.malloc(24 * kMiB, 0);
  const Bytes x_at = a.address(x), y_at = a.address(y), z_at = a.address(z);
  a.free(x), a.free(z), a.free(y);
  EXPECT_EQ(a.address(*a.malloc(22 * kMiB, 0)), y_at);
  EXPECT_EQ(a.address(*a.malloc(22 * kMiB, 0)), z_at);
  EXPECT_EQ(a.address(*a.malloc(22 * kMiB, 0)), x_at);
}

TEST(Allocator, StreamsAndPoolsDoNotShare) {
  CachingAllocator a = plain();
  a.free(*a.malloc(4 * kMiB, 0));
  ASSERT_TRUE(a.malloc(4 * kMiB, 1));
  EXPECT_EQ(a.stats().reserved.now, 40 * kMiB);
  ASSERT_TRUE(a.malloc(kMiB, 0));  // a small block does not come from the free large segment
  EXPECT_EQ(a.stats().reserved.now, 42 * kMiB);
  ASSERT_TRUE(a.malloc(4 * kMiB, 0));
  EXPECT_EQ(a.stats().reserved.now, 42 * kMiB);
}

TEST(Allocator, BlocksOfOtherStreamsStayActiveUntilTheirEvent) {
  CachingAllocator a = plain();
  const BlockId b = *a.malloc(20 * kMiB, 0, 0);
  a.free_after(b, 100);
  EXPECT_EQ(a.stats().allocated.now, 0);
  EXPECT_EQ(a.stats().active.now, 20 * kMiB);
  EXPECT_EQ(a.stats().requested.now, 20 * kMiB);
  const BlockId c = *a.malloc(20 * kMiB, 0, 99);
  EXPECT_EQ(a.stats().reserved.now, 40 * kMiB);
  ASSERT_TRUE(a.malloc(20 * kMiB, 0, 100));
  EXPECT_EQ(a.stats().reserved.now, 40 * kMiB);
  EXPECT_EQ(a.stats().active.now, 40 * kMiB);
  a.free_after(c, 200);
  a.process_events(200);
  EXPECT_EQ(a.stats().active.now, 20 * kMiB);
}

TEST(Allocator, OutOfMemoryReleasesUnsplitSegmentsWaitsForEventsAndRetries) {
  CachingAllocator a = plain(100 * kMiB);
  const BlockId whole = *a.malloc(40 * kMiB, 0), other = *a.malloc(30 * kMiB, 1), part = *a.malloc(2 * kMiB, 0);
  a.free(whole);
  a.free_after(other, 700);
  EXPECT_EQ(a.stats().reserved.now, 90 * kMiB);
  ASSERT_TRUE(a.malloc(80 * kMiB, 0, 1));  // needs 80: both free segments go back, the split 20 MiB one stays
  EXPECT_EQ(a.stats().reserved.now, 100 * kMiB);
  EXPECT_EQ(a.stats().retries, 1);
  EXPECT_EQ(a.stats().out_of_memory, 0);
  EXPECT_EQ(a.stats().device_frees, 2);
  EXPECT_EQ(a.stats().synchronized_until, 700);
  EXPECT_FALSE(a.malloc(20 * kMiB, 1));
  EXPECT_EQ(a.stats().retries, 2);
  EXPECT_EQ(a.stats().out_of_memory, 1);
  EXPECT_EQ(a.stats().allocated.now, 82 * kMiB);
  a.free(part);
  EXPECT_TRUE(a.malloc(20 * kMiB, 1));
}

// Every second block of a full device is freed: half is free, yet no larger request fits, since each 20 MiB segment
// still holds a block. Pages of expandable segments do not help while a block sits in each, but blocks of whole pages
// do.
std::vector<BlockId> checkerboard(CachingAllocator& a, Bytes block, int count) {
  std::vector<BlockId> kept, gone;
  for (int i = 0; i < count; ++i) (i % 2 ? gone : kept).push_back(*a.malloc(block, 0));
  for (const BlockId id : gone) a.free(id);
  return kept;
}

TEST(Allocator, FragmentationFailsARequestAlthoughEnoughIsFree) {
  CachingAllocator a = plain(200 * kMiB);
  checkerboard(a, 5 * kMiB, 40);
  EXPECT_EQ(a.stats().allocated.now, 100 * kMiB);
  EXPECT_EQ(a.stats().inactive_split.now, 100 * kMiB);
  EXPECT_FALSE(a.malloc(6 * kMiB, 0));
  EXPECT_EQ(a.stats().reserved.now, 200 * kMiB);
  EXPECT_EQ(a.stats().out_of_memory, 1);
}

TEST(Allocator, ExpandableSegmentsGrowWhereFixedSegmentsAreTooSmall) {
  // Requests that grow, as a sequence length may: a fixed segment of the previous size is of no use, and while it is
  // partly used it cannot be given back.
  const auto run = [](CachingAllocator a) {
    std::vector<BlockId> kept;
    for (Bytes size = 20 * kMiB; size <= 60 * kMiB; size += 10 * kMiB) {
      const auto big = a.malloc(size, 0);
      if (!big) return false;
      a.free(*big);
      kept.push_back(*a.malloc(size - 10 * kMiB, 0));
    }
    return true;
  };
  EXPECT_FALSE(run(plain(180 * kMiB)));
  EXPECT_TRUE(run(expandable(180 * kMiB)));
}

TEST(Allocator, ExpandableSegmentsGiveBackWholePagesInTheMiddle) {
  CachingAllocator a = expandable(200 * kMiB);
  checkerboard(a, 20 * kMiB, 10);
  EXPECT_EQ(a.stats().reserved.now, 200 * kMiB);
  EXPECT_EQ(a.stats().inactive_split.now, 0);
  EXPECT_TRUE(a.malloc(100 * kMiB, 0));  // five scattered pages become five in a row
  EXPECT_EQ(a.stats().reserved.now, 200 * kMiB);
  EXPECT_EQ(a.stats().retries, 1);
  CachingAllocator b = plain(200 * kMiB);
  std::vector<BlockId> halves;
  for (int i = 0; i < 5; ++i) halves.push_back(*b.malloc(40 * kMiB, 0));
  for (const BlockId id : halves) b.free(id);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(b.malloc(20 * kMiB, 0));  // split the first two and a half
  EXPECT_TRUE(b.malloc(80 * kMiB, 0));
  EXPECT_FALSE(b.malloc(22 * kMiB, 0));
}

TEST(Allocator, ExpandableSegmentsMapOnlyWhatTheFreeTailLacks) {
  CachingAllocator a = expandable();
  const BlockId first = *a.malloc(25 * kMiB, 0);
  EXPECT_EQ(a.stats().reserved.now, 40 * kMiB);
  EXPECT_EQ(a.size(first), 25 * kMiB);
  const BlockId second = *a.malloc(30 * kMiB, 0);  // 15 MiB of tail + one page
  EXPECT_EQ(a.stats().reserved.now, 60 * kMiB);
  EXPECT_EQ(a.address(second), a.address(first) + 25 * kMiB);
  ASSERT_TRUE(a.malloc(512, 0));
  EXPECT_EQ(a.stats().reserved.now, 62 * kMiB);
}

TEST(Allocator, EmptyCacheReturnsEverythingUnused) {
  for (const bool is_expandable : {false, true}) {
    CachingAllocator a({kBytesOfGiB, is_expandable});
    std::vector<BlockId> blocks;
    for (int i = 0; i < 50; ++i) blocks.push_back(*a.malloc((i * 731 % 17 + 1) * 300 * kKiB, i % 3));
    for (const BlockId id : blocks) a.free(id);
    EXPECT_GT(a.stats().reserved.now, 0);
    a.empty_cache();
    EXPECT_EQ(a.stats().reserved.now, 0);
    EXPECT_EQ(a.stats().inactive_split.now, 0);
  }
}

TEST(Allocator, PeaksRestartAtTheCurrentValue) {
  CachingAllocator a = plain();
  a.free(*a.malloc(30 * kMiB, 0));
  a.reset_peaks();
  EXPECT_EQ(a.stats().allocated.peak, 0);
  EXPECT_EQ(a.stats().reserved.peak, 30 * kMiB);
}

// --- Random traces against plain lists -------------------------------------------------------------------------------

using test::random_bits;

Bytes random_size(std::uint64_t r) {
  switch (r % 4) {
    case 0:
      return static_cast<Bytes>((r >> 8) % 4096) + 1;
    case 1:
      return static_cast<Bytes>((r >> 8) % (1500 * 1024)) + 1;
    case 2:
      return static_cast<Bytes>((r >> 8) % 12) * kMiB + 512;
    default:
      return static_cast<Bytes>((r >> 8) % (40 * 1024 * 1024)) + 1;
  }
}

// Runs one random trace through both allocators.
void compare(Reference& reference, CachingAllocator& allocator, std::uint64_t seed, int events) {
  std::vector<std::pair<BlockId, SegmentPlace>> live;
  AllocatorStats before = allocator.stats();
  for (int i = 0; i < events; ++i) {
    const std::uint64_t r = random_bits(seed * 1000003 + static_cast<std::uint64_t>(i));
    const bool growing = (i / 64) % 2 == 0;
    if (live.empty() || r % 8 < (growing ? 5U : 3U)) {
      const Bytes bytes = random_size(r >> 8);
      const int stream = static_cast<int>((r >> 4) % 3);
      const auto id = allocator.malloc(bytes, stream, i);
      const auto place = reference.malloc(bytes, stream, i);
      ASSERT_EQ(id.has_value(), place.has_value()) << "seed " << seed << " event " << i;
      if (id) {
        live.push_back({*id, *place});
        ASSERT_EQ(allocator.size(*id), reference.used.at(*place).size) << "seed " << seed << " event " << i;
      }
    } else {
      const std::size_t which = (r >> 8) % live.size();
      const auto [id, place] = live[which];
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(which));
      if (r >> 60 < 3) {
        allocator.free_after(id, i + 20);
        reference.free_after(place, i + 20);
      } else {
        allocator.free(id);
        reference.free(place);
      }
    }
    const AllocatorStats& s = allocator.stats();
    ASSERT_EQ(counts(s), reference.now()) << "seed " << seed << " event " << i;
    ASSERT_GE(s.reserved.now, s.active.now);
    ASSERT_GE(s.active.now, s.allocated.now);
    ASSERT_GE(s.active.now, s.requested.now);
    ASSERT_GE(s.reserved.now, s.active.now + s.inactive_split.now);
    ASSERT_LE(s.reserved.now, reference.capacity);
    ASSERT_GE(s.reserved.peak, std::max(s.reserved.now, before.reserved.peak));
    ASSERT_GE(s.allocated.peak, std::max(s.allocated.now, before.allocated.peak));
    before = s;
  }
  for (const auto& [id, place] : live) allocator.free(id);
  allocator.process_events(INT64_MAX);
  EXPECT_EQ(allocator.stats().allocated.now, 0);
  EXPECT_EQ(allocator.stats().active.now, 0);
  EXPECT_EQ(allocator.stats().requested.now, 0);
  EXPECT_EQ(allocator.stats().inactive_split.now, 0);
  EXPECT_EQ(allocator.stats().reserved.now, before.reserved.now);
}

TEST(AllocatorProperty, FixedSegmentsEqualThePlainLists) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Bytes capacity = (200 + 150 * static_cast<Bytes>(seed % 4)) * kMiB;
    FixedReference reference(capacity);
    CachingAllocator allocator({capacity, false});
    compare(reference, allocator, seed, 400);
    if (HasFatalFailure()) return;
  }
}

TEST(AllocatorProperty, ExpandableSegmentsEqualThePlainLists) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const Bytes capacity = (200 + 150 * static_cast<Bytes>(seed % 4)) * kMiB;
    ExpandableReference reference(capacity);
    CachingAllocator allocator({capacity, true});
    compare(reference, allocator, seed, 400);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace orrery
