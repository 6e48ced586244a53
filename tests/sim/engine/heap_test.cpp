#include "sim/engine/heap.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

using test::random_bits;

TEST(Heap, TiesComeInTheOrderOfIds) {
  Heap heap;
  for (const std::uint32_t id : {3U, 1U, 4U, 0U, 2U}) heap.push({7, id});
  heap.push({-5, 9});
  EXPECT_EQ(heap.pop(), (TimedId{-5, 9}));
  for (std::uint32_t id = 0; id < 5; ++id) EXPECT_EQ(heap.pop(), (TimedId{7, id}));
  EXPECT_TRUE(heap.empty());
}

TEST(Heap, KnowsWhetherTheFirstTimeComesAgain) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Heap heap;
    std::vector<Picoseconds> times;
    for (std::uint64_t i = 0; i <= seed % 20; ++i) {
      times.push_back(static_cast<Picoseconds>(random_bits(seed * 100 + i) % 12));
      heap.push({times.back(), static_cast<std::uint32_t>(i)});
    }
    ASSERT_EQ(heap.tied(), std::count(times.begin(), times.end(), *std::min_element(times.begin(), times.end())) > 1);
  }
}

TEST(Heap, SortsEverySize) {
  for (std::size_t size = 0; size < 200; ++size) {
    Heap heap;
    std::vector<TimedId> keys;
    for (std::size_t i = 0; i < size; ++i) {
      const std::uint64_t r = random_bits(size * 1000 + i);
      keys.push_back({static_cast<Picoseconds>(r % 50), static_cast<std::uint32_t>(r >> 40) % 4});
      heap.push(keys.back());
    }
    std::sort(keys.begin(), keys.end());
    ASSERT_EQ(heap.size(), size);
    for (const TimedId& key : keys) ASSERT_EQ(heap.pop(), key);
  }
}

TEST(Heap, MixedUseEqualsASortedList) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Heap heap;
    std::vector<TimedId> list;
    for (std::uint64_t step = 0; step < 1000; ++step) {
      const std::uint64_t r = random_bits(seed * 10007 + step);
      const TimedId key{static_cast<Picoseconds>((r >> 8) % 1000), static_cast<std::uint32_t>(step)};
      const std::uint64_t what = list.empty() ? 0 : r % 5;
      if (what < 3) {
        if (what == 2) {
          ASSERT_EQ(heap.replace_top(key), list.front());
          list.erase(list.begin());
        } else {
          heap.push(key);
        }
        list.insert(std::lower_bound(list.begin(), list.end(), key), key);
      } else {
        ASSERT_EQ(heap.pop(), list.front());
        list.erase(list.begin());
      }
      ASSERT_EQ(heap.size(), list.size());
      if (!list.empty()) {
        ASSERT_EQ(heap.top(), list.front());
      }
    }
  }
}

}  // namespace
}  // namespace orrery
