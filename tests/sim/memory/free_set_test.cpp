#include "sim/memory/free_set.h"

#include <set>
#include <utility>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

using test::random_bits;

// Sizes of 512 bytes up to 128 GiB, many of them equal.
Bytes scattered_size(std::uint64_t r) { return 512 * (1 + static_cast<Bytes>((r >> 20) & ((1U << (r % 29)) - 1))); }

TEST(FreeSet, EqualsASetOrderedBySizeAndAddress) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    FreeSet blocks;
    std::set<std::pair<Bytes, Bytes>> expected;
    for (std::uint64_t step = 0; step < 2000; ++step) {
      const std::uint64_t r = random_bits(seed * 100'003 + step);
      const auto address = static_cast<Bytes>(step) * 512;
      if (r % 8 < 5 || expected.empty()) {
        const Bytes size = scattered_size(r >> 3);
        blocks.insert({size, address, static_cast<std::uint32_t>(step)});
        expected.insert({size, address});
      } else {
        const auto it = expected.lower_bound({scattered_size(r >> 3), 0});
        const auto [size, at] = it == expected.end() ? *expected.begin() : *it;
        blocks.erase(size, at);
        expected.erase({size, at});
      }
      const Bytes wanted = scattered_size(random_bits(r));
      const auto it = expected.lower_bound({wanted, 0});
      const FreeBlock* found = blocks.at_least(wanted);
      ASSERT_EQ(found == nullptr, it == expected.end());
      if (found) {
        ASSERT_EQ(std::pair(found->size, found->address), *it);
        ASSERT_EQ(found->id, static_cast<std::uint32_t>(found->address / 512));
      }
    }
    auto it = expected.begin();
    for (const FreeBlock* b = blocks.at_least(0); b; b = blocks.after(*b), ++it) {
      ASSERT_EQ(std::pair(b->size, b->address), *it);
    }
    ASSERT_EQ(it, expected.end());
  }
}

}  // namespace
}  // namespace orrery
