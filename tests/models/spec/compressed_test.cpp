#include "models/spec/compressed.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(Compressed, PairsAreThoseOfEveryToken) {
  for (const std::int64_t sequence : {1, 7, 64, 131}) {
    for (const std::int64_t rate : {1, 4, 16}) {
      for (const std::int64_t most : {0, 1, 5, 1000}) {
        std::int64_t sum = 0;
        for (std::int64_t t = 1; t <= sequence; ++t) sum += most > 0 ? std::min(most, t / rate) : t / rate;
        EXPECT_DOUBLE_EQ(compressed_pairs(sequence, rate, most), static_cast<double>(sum))
            << sequence << " " << rate << " " << most;
      }
    }
  }
}

TEST(Compressed, EveryKindAddsItsKeysToTheWindow) {
  Model m;
  m.compressed_attention = {.window = 8, .sparse_rate = 4, .heavy_rate = 16};
  m.indexer = {.heads = 1, .head_dim = 1, .top_k = 2};
  std::int64_t window = 0, sparse = 0, heavy = 0, indexed = 0;
  for (std::int64_t t = 1; t <= 50; ++t) {
    window += std::min<std::int64_t>(t, 8);
    sparse += std::min<std::int64_t>(t / 4, 2);
    indexed += t / 4;
    heavy += t / 16;
  }
  EXPECT_DOUBLE_EQ(attended_pairs(m, Mixer::windowed, 50), static_cast<double>(window));
  EXPECT_DOUBLE_EQ(attended_pairs(m, Mixer::compressed_sparse, 50), static_cast<double>(window + sparse));
  EXPECT_DOUBLE_EQ(attended_pairs(m, Mixer::heavily_compressed, 50), static_cast<double>(window + heavy));
  EXPECT_DOUBLE_EQ(indexed_pairs(m, Mixer::compressed_sparse, 50), static_cast<double>(indexed));
  EXPECT_DOUBLE_EQ(indexed_pairs(m, Mixer::heavily_compressed, 50), 0);
}

}  // namespace
}  // namespace orrery
