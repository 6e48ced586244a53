#include "sim/engine/fans.h"

#include <map>
#include <utility>

#include <gtest/gtest.h>

#include "tests/random_bits.h"

namespace orrery {
namespace {

TEST(Fans, CountWhatWasAddedAndNotTaken) {
  std::uint64_t counter = 0;
  for (const std::uint64_t links : {3ULL, 40ULL, 1000ULL}) {
    Fans fans;
    std::multimap<LinkId, std::int64_t> added;
    for (int step = 0; step < 5000; ++step) {
      const auto link = static_cast<LinkId>(test::random_bits(++counter) % links);
      const auto at = added.find(link);
      if (test::random_bits(++counter) % 2 == 0 || at == added.end()) {
        const auto weight = static_cast<std::int64_t>(test::random_bits(++counter) % 100);
        fans.add(link, weight);
        added.emplace(link, weight);
      } else {
        fans.take(link, at->second);
        added.erase(at);
      }
      if (step % 50 != 0) continue;
      std::map<LinkId, std::pair<std::uint32_t, std::int64_t>> expected, counted;
      for (const auto& [of, weight] : added) {
        ++expected[of].first;
        expected[of].second += weight;
      }
      for (const Fans::Fan& fan : fans.all()) counted[fan.link] = {fan.count, fan.weight};
      ASSERT_EQ(counted, expected);
      ASSERT_EQ(fans.all().size(), expected.size());
    }
    fans.clear();
    EXPECT_TRUE(fans.all().empty());
    fans.add(7, 1);
    EXPECT_EQ(fans.all().size(), 1U);
  }
}

}  // namespace
}  // namespace orrery
