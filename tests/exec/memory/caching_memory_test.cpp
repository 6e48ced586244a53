#include "exec/memory/caching_memory.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/random_bits.h"

namespace orrery {
namespace {

constexpr Bytes kMiB = 1 << 20;

// A source of host segments that records the segments handed out, at most `limit` bytes.
struct Segments {
  std::map<std::byte*, Bytes> out;
  Bytes held = 0, limit = 0;
  SegmentSource host = host_segments();

  SegmentSource source() {
    return {[this](Bytes bytes) -> std::byte* {
              if (limit > 0 && held + bytes > limit) return nullptr;
              std::byte* at = host.take(bytes);
              out[at] = bytes;
              held += bytes;
              return at;
            },
            [this](std::byte* at, Bytes bytes) {
              EXPECT_EQ(out.at(at), bytes);
              out.erase(at);
              held -= bytes;
              host.give(at, bytes);
            }};
  }
};

// A block as its user sees it; all its bytes hold `mark`.
struct Given {
  std::byte* at;
  Bytes asked;
  int pool;
  unsigned char mark;
};

Bytes random_size(std::uint64_t bits) {
  const Bytes limits[] = {2000, kMiB, 2 * kMiB, 12 * kMiB};
  return 1 + static_cast<Bytes>(bits >> 8) % limits[bits % 4];
}

bool untouched(const Given& g) {
  const auto holds = [&](Bytes i) { return g.at[i] == std::byte{g.mark}; };
  return holds(0) && holds(g.asked / 2) && holds(g.asked - 1);
}

// Random requests, each marked at its ends and middle: blocks overlap nowhere, lie in a segment, keep what was written,
// and the counters are the sums they claim to be.
class RandomRequests {
 public:
  explicit RandomRequests(std::uint64_t seed) : random_(seed * 100000) {}

  void run(int requests) {
    for (int i = 0; i < requests; ++i) {
      const std::uint64_t bits = test::random_bits(++random_);
      given_.empty() || bits % 5 < 3 ? take(test::random_bits(++random_)) : give(bits / 5 % given_.size());
      check_counters();
    }
    while (!given_.empty()) give(given_.size() - 1);
    EXPECT_EQ(memory_.use().allocated, 0);
    EXPECT_EQ(memory_.use().reserved, segments_.held);
  }

 private:
  void take(std::uint64_t bits) {
    Given g = {nullptr, random_size(bits), static_cast<int>(bits >> 40) % 3, static_cast<unsigned char>(bits >> 50)};
    g.at = memory_.allocate(g.asked, g.pool);
    const Bytes size = memory_.size_of(g.at);
    EXPECT_GE(size, g.asked);
    EXPECT_EQ(size % 512, 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(g.at) % 512, 0U);
    for (const Given& other : given_) {
      EXPECT_TRUE(g.at + size <= other.at || other.at + memory_.size_of(other.at) <= g.at) << "overlap";
    }
    check_segment(g, size);
    for (const Bytes i : {Bytes{0}, g.asked / 2, g.asked - 1}) g.at[i] = std::byte{g.mark};
    given_.push_back(g);
    peak_ = std::max(peak_, allocated());
  }

  void give(std::size_t i) {
    EXPECT_TRUE(untouched(given_[i]));
    memory_.free(given_[i].at);
    given_.erase(given_.begin() + static_cast<std::ptrdiff_t>(i));
  }

  // Checks that a block lies in one segment, which only the block's pool has used.
  void check_segment(const Given& g, Bytes size) {
    auto segment = segments_.out.upper_bound(g.at);
    ASSERT_NE(segment, segments_.out.begin());
    --segment;
    EXPECT_LE(g.at + size, segment->first + segment->second);
    EXPECT_EQ(pool_of_.try_emplace(segment->first, g.pool).first->second, g.pool);
  }

  Bytes allocated() const {
    Bytes sum = 0;
    for (const Given& g : given_) sum += memory_.size_of(g.at);
    return sum;
  }

  void check_counters() const {
    EXPECT_EQ(memory_.use().allocated, allocated());
    EXPECT_EQ(memory_.use().peak_allocated, peak_);
    EXPECT_EQ(memory_.use().reserved, segments_.held);
    EXPECT_EQ(memory_.use().peak_reserved, segments_.held);  // nothing was given back: there was room
  }

  std::uint64_t random_;
  Segments segments_;
  CachingMemory memory_{segments_.source()};
  std::vector<Given> given_;
  std::map<std::byte*, int> pool_of_;
  Bytes peak_ = 0;
};

TEST(CachingMemory, KeepsItsPromisesUnderRandomRequests) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    RandomRequests(seed).run(150);
  }
}

TEST(CachingMemory, GivesAllSegmentsBack) {
  Segments segments;
  {
    CachingMemory memory(segments.source());
    memory.allocate(1, 0);
    std::byte* big = memory.allocate(30 * kMiB, 1);
    memory.allocate(3 * kMiB, 2);
    memory.free(big);
    EXPECT_EQ(segments.out.size(), 3U);
  }
  EXPECT_EQ(segments.held, 0);
}

// Sizes of memory segments follow the rules of PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp).
TEST(CachingMemory, RoundsSegments) {
  const std::pair<Bytes, Bytes> cases[] = {{1, 2 * kMiB},          {kMiB, 2 * kMiB},
                                           {kMiB + 1, 20 * kMiB},  {10 * kMiB - 512, 20 * kMiB},
                                           {10 * kMiB, 10 * kMiB}, {13 * kMiB, 14 * kMiB}};
  for (const auto& [asked, segment] : cases) {
    CachingMemory memory(host_segments());
    memory.allocate(asked, 0);
    EXPECT_EQ(memory.use().reserved, segment) << asked;
  }
}

// Neighbouring blocks that are freed become one block, in whichever order they are freed.
TEST(CachingMemory, JoinsNeighbours) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    CachingMemory memory(host_segments());
    std::vector<std::byte*> quarters;
    for (int i = 0; i < 4; ++i) quarters.push_back(memory.allocate(5 * kMiB, 0));
    ASSERT_EQ(memory.use().reserved, 20 * kMiB);
    for (const int i : order) memory.free(quarters[i]);
    EXPECT_EQ(memory.allocate(20 * kMiB, 0), quarters[0]);
    EXPECT_EQ(memory.use().reserved, 20 * kMiB);
  } while (std::next_permutation(order.begin(), order.end()));
}

// An allocation gets the smallest free block of its pool that fits, and never a block of another pool.
TEST(CachingMemory, TakesTheBestFitOfItsPool) {
  CachingMemory memory(host_segments());
  std::byte* large = memory.allocate(40 * kMiB, 0);
  std::byte* fitting = memory.allocate(30 * kMiB, 0);
  memory.free(large);
  memory.free(fitting);
  EXPECT_NE(memory.allocate(30 * kMiB, 1), fitting);
  EXPECT_EQ(memory.allocate(30 * kMiB, 0), fitting);
}

TEST(CachingMemory, ReturnsUnusedSegmentsBeforeItFails) {
  Segments segments;
  segments.limit = 64 * kMiB;
  CachingMemory memory(segments.source());
  std::byte* first = memory.allocate(40 * kMiB, 0);
  memory.free(first);
  std::byte* second = memory.allocate(50 * kMiB, 1);  // only after the first segment has gone
  EXPECT_EQ(memory.use().reserved, 50 * kMiB);
  EXPECT_EQ(memory.use().peak_reserved, 50 * kMiB);
  try {
    memory.allocate(20 * kMiB, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "out of memory: no 20 MiB beside 50 MiB allocated and 50 MiB reserved");
    EXPECT_EQ(error.exit_code, 1);
  }
  memory.free(second);
  EXPECT_NE(memory.allocate(20 * kMiB, 0), nullptr);
}

}  // namespace
}  // namespace orrery
