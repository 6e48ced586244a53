#include "sim/allocator.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace orrery {
namespace {

constexpr Bytes kKiB = 1024;
constexpr Bytes kMiB = 1024 * kKiB;
constexpr Bytes kGiB = 1024 * kMiB;

CachingAllocator plain(Bytes capacity = 64 * kGiB) { return CachingAllocator({capacity, false}); }
CachingAllocator expandable(Bytes capacity = 64 * kGiB) { return CachingAllocator({capacity, true}); }

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
        FirstRequest{11 * kMiB - 512, 11 * kMiB - 512, 12 * kMiB}, FirstRequest{kGiB, kGiB, kGiB}));

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
    CachingAllocator a({kGiB, is_expandable});
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

std::uint64_t random_bits(std::uint64_t counter) {  // splitmix64 (Steele, Lea, Flood, OOPSLA 2014)
  std::uint64_t z = counter * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

struct Counts {
  Bytes allocated = 0, requested = 0, active = 0, reserved = 0, inactive_split = 0;
  std::int64_t retries = 0, out_of_memory = 0;
  auto operator<=>(const Counts&) const = default;
};

void PrintTo(const Counts& c, std::ostream* out) {
  *out << c.allocated << ' ' << c.requested << ' ' << c.active << ' ' << c.reserved << ' ' << c.inactive_split << ' '
       << c.retries << ' ' << c.out_of_memory;
}

Counts counts(const AllocatorStats& s) {
  return {s.allocated.now,      s.requested.now, s.active.now,   s.reserved.now,
          s.inactive_split.now, s.retries,       s.out_of_memory};
}

struct Used {
  Bytes size, requested;
  bool pending;
};
using Place = std::pair<int, Bytes>;  // segment, offset in it

// What the two references share. A segment keeps only what is used; free parts are the gaps, found anew for each
// question, so nothing is ever split or merged.
struct Reference {
  virtual ~Reference() = default;
  explicit Reference(Bytes bytes) : capacity(bytes) {}
  virtual std::optional<Place> fit(Bytes size, int stream) = 0;
  virtual std::optional<Place> grow(Bytes size, int stream) = 0;
  virtual void drop_unused() = 0;
  virtual Bytes reserved() const = 0;
  virtual Bytes inactive_split() const = 0;
  virtual Bytes block_size(Place at, Bytes size) const = 0;

  std::optional<Place> malloc(Bytes bytes, int stream, Picoseconds now) {
    process(now);
    const Bytes size = (bytes + 511) / 512 * 512;
    auto at = fit(size, stream);
    if (!at) at = grow(size, stream);
    if (!at) {
      ++retries;
      process(INT64_MAX);
      drop_unused();
      at = grow(size, stream);  // what the events freed in split segments is not looked at
      if (!at) ++out_of_memory;
    }
    if (at) used[*at] = {block_size(*at, size), bytes, false};
    return at;
  }
  void free(Place at) { used.erase(at); }
  void free_after(Place at, Picoseconds until) {
    used[at].pending = true;
    waiting.push_back({until, at});
  }
  void process(Picoseconds now) {
    for (const auto& [until, at] : waiting) {
      if (until <= now) used.erase(at);
    }
    std::erase_if(waiting, [&](const auto& w) { return w.first <= now; });
  }
  // Gaps between used blocks of [0, size) of a segment.
  std::vector<std::pair<Bytes, Bytes>> gaps(int segment, Bytes size) const {
    std::vector<std::pair<Bytes, Bytes>> result;
    Bytes at = 0;
    for (auto it = used.lower_bound({segment, 0}); it != used.end() && it->first.first == segment; ++it) {
      if (it->first.second > at) result.push_back({at, it->first.second});
      at = it->first.second + it->second.size;
    }
    if (at < size) result.push_back({at, size});
    return result;
  }
  Counts now() const {
    Counts c{0, 0, 0, reserved(), inactive_split(), retries, out_of_memory};
    for (const auto& [at, b] : used) {
      c.allocated += b.pending ? 0 : b.size;
      c.requested += b.requested;
      c.active += b.size;
    }
    return c;
  }

  Bytes capacity;
  std::map<Place, Used> used;
  std::vector<std::pair<Picoseconds, Place>> waiting;
  std::int64_t retries = 0, out_of_memory = 0;
};

struct FixedReference : Reference {
  struct Segment {
    int stream;
    bool large;
    Bytes size;
  };
  using Reference::Reference;

  std::optional<Place> fit(Bytes size, int stream) override {
    std::optional<std::tuple<Bytes, int, Bytes>> best;
    for (const auto& [id, s] : segments) {
      if (s.stream != stream || s.large != (size > kMiB)) continue;
      for (const auto& [from, to] : gaps(id, s.size)) {
        const std::tuple candidate{to - from, id, from};
        if (to - from >= size && (!best || candidate < *best)) best = candidate;
      }
    }
    if (!best) return std::nullopt;
    return Place{std::get<1>(*best), std::get<2>(*best)};
  }
  std::optional<Place> grow(Bytes size, int stream) override {
    const bool large = size > kMiB;
    const Bytes bytes = !large             ? 2 * kMiB
                        : size < 10 * kMiB ? 20 * kMiB
                                           : (size + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
    if (reserved() + bytes > capacity) return std::nullopt;
    segments[++last] = {stream, large, bytes};
    return Place{last, 0};
  }
  Bytes block_size(Place at, Bytes size) const override {
    const Segment& s = segments.at(at.first);
    for (const auto& [from, to] : gaps(at.first, s.size)) {
      if (from == at.second && to - from - size <= (s.large ? kMiB : 0)) return to - from;
    }
    return size;
  }
  void drop_unused() override {
    std::erase_if(segments, [&](const auto& s) { return whole(s.first, s.second.size); });
  }
  bool whole(int id, Bytes size) const {
    const auto g = gaps(id, size);
    return g.size() == 1 && g[0].second - g[0].first == size;
  }
  Bytes reserved() const override {
    Bytes sum = 0;
    for (const auto& [id, s] : segments) sum += s.size;
    return sum;
  }
  Bytes inactive_split() const override {
    Bytes sum = 0;
    for (const auto& [id, s] : segments) {
      if (whole(id, s.size)) continue;
      for (const auto& [from, to] : gaps(id, s.size)) sum += to - from;
    }
    return sum;
  }

  std::map<int, Segment> segments;
  int last = 0;
};

// Expandable: one range per stream and pool (test traces never need a second), a flag per page. Unused bytes of mapped
// pages are free, pages that are not mapped can be.
struct ExpandableReference : Reference {
  struct Range {
    Bytes page;
    std::vector<bool> mapped;
    Bytes size() const { return page * static_cast<Bytes>(mapped.size()); }
  };
  using Pieces = std::vector<std::tuple<Bytes, Bytes, bool>>;  // from, to, mapped
  using Reference::Reference;

  // Gaps cut where mapping changes.
  Pieces pieces(int id) const {
    const Range& r = ranges.at(id);
    Pieces result;
    for (const auto& [from, to] : gaps(id, r.size())) {
      for (Bytes at = from; at < to;) {
        const bool mapped = r.mapped[static_cast<std::size_t>(at / r.page)];
        const Bytes end = std::min(to, (at / r.page + 1) * r.page);
        if (!result.empty() && std::get<1>(result.back()) == at && std::get<2>(result.back()) == mapped) {
          std::get<1>(result.back()) = end;
        } else {
          result.push_back({at, end, mapped});
        }
        at = end;
      }
    }
    return result;
  }
  std::optional<Bytes> best_fit(const Pieces& all, Bytes size) const {
    std::vector<std::tuple<Bytes, Bytes, Bytes>> fits;  // size, from, size with what can be mapped behind it
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto& [from, to, mapped] = all[i];
      if (!mapped || to - from < size) continue;
      const bool grows = i + 1 < all.size() && std::get<0>(all[i + 1]) == to;
      fits.push_back({to - from, from, (grows ? std::get<1>(all[i + 1]) : to) - from});
    }
    if (fits.empty()) return std::nullopt;
    std::sort(fits.begin(), fits.end());
    std::size_t best = 0;
    while (best + 1 < fits.size() && std::get<2>(fits[best + 1]) < std::get<2>(fits[best])) ++best;
    return std::get<1>(fits[best]);
  }
  // Lowest start of a run of gaps that begins with an unmapped piece or the free one right before it.
  Bytes room(const Pieces& all, Bytes size) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::get<2>(all[i])) continue;
      const std::size_t first = i > 0 && std::get<1>(all[i - 1]) == std::get<0>(all[i]) ? i - 1 : i;
      std::size_t last = first;
      while (last + 1 < all.size() && std::get<1>(all[last]) == std::get<0>(all[last + 1])) ++last;
      if (std::get<1>(all[last]) - std::get<0>(all[first]) >= size) return std::get<0>(all[first]);
    }
    ADD_FAILURE() << "the range of addresses is too small for this trace";
    return 0;
  }
  std::optional<Place> fit(Bytes size, int stream) override {
    const int id = 2 * stream + (size > kMiB);
    if (!ranges.count(id)) return std::nullopt;
    const auto at = best_fit(pieces(id), size);
    if (!at) return std::nullopt;
    return Place{id, *at};
  }
  std::optional<Place> grow(Bytes size, int stream) override {
    const int id = 2 * stream + (size > kMiB);
    if (!ranges.count(id)) {
      const Bytes page = size > kMiB ? 20 * kMiB : 2 * kMiB;
      ranges[id] = {page, std::vector<bool>(static_cast<std::size_t>((capacity + capacity / 8 + page - 1) / page))};
    }
    Range& r = ranges[id];
    const Pieces all = pieces(id);
    const Bytes from = room(all, size);
    for (const auto& [a, b, mapped] : all) {  // map piece by piece; a piece is mapped as a whole or not at all
      if (mapped || a < from || a >= from + size) continue;
      const Bytes pages = (std::min(b, from + size) - a + r.page - 1) / r.page;
      if (reserved() + pages * r.page > capacity) return std::nullopt;
      for (Bytes p = 0; p < pages; ++p) r.mapped[static_cast<std::size_t>(a / r.page + p)] = true;
    }
    return Place{id, from};
  }
  Bytes block_size(Place, Bytes size) const override { return size; }
  void drop_unused() override {
    for (auto& [id, r] : ranges) {
      for (const auto& [from, to, mapped] : pieces(id)) {
        for (Bytes p = (from + r.page - 1) / r.page; p < to / r.page; ++p)
          r.mapped[static_cast<std::size_t>(p)] = false;
      }
    }
  }
  Bytes reserved() const override {
    Bytes sum = 0;
    for (const auto& [id, r] : ranges) sum += r.page * std::count(r.mapped.begin(), r.mapped.end(), true);
    return sum;
  }
  Bytes inactive_split() const override { return 0; }

  std::map<int, Range> ranges;
};

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

// One random trace through both. Blocks with equal addresses in one are told apart by their place in the other.
void compare(Reference& reference, CachingAllocator& allocator, std::uint64_t seed, int events) {
  std::vector<std::pair<BlockId, Place>> live;
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
      if (!id) continue;
      live.push_back({*id, *place});
      ASSERT_EQ(allocator.size(*id), reference.used.at(*place).size) << "seed " << seed << " event " << i;
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
