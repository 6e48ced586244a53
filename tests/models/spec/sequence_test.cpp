#include "models/spec/sequence.h"

#include <set>

#include <gtest/gtest.h>

namespace orrery {
namespace {

struct SequenceLayout {
  std::int64_t ring, ulysses;
  bool zigzag;
};

constexpr std::int64_t kSequenceLength = 48;

std::vector<Strategy> layouts() {
  std::vector<Strategy> all;
  for (const SequenceLayout& l : {SequenceLayout{1, 1, true},
                                  {1, 4, true},
                                  {2, 1, true},
                                  {2, 1, false},
                                  {4, 1, true},
                                  {4, 1, false},
                                  {2, 2, true},
                                  {2, 3, true},
                                  {3, 2, false},
                                  {2, 4, false},
                                  {8, 1, true},
                                  {8, 2, true}}) {
    Strategy s;
    s.context_ring = l.ring;
    s.context_ulysses = l.ulysses;
    s.context = l.ring * l.ulysses;
    s.context_zigzag = l.zigzag;
    all.push_back(s);
  }
  return all;
}

// Every position lies on one rank, equally many on each; the ranks of a block together hold the block's positions, in
// order.
TEST(Sequence, PartsAreAPartition) {
  for (const Strategy& s : layouts()) {
    std::set<std::int64_t> seen;
    for (std::int64_t b = 0; b < s.context_ring; ++b) {
      std::vector<std::int64_t> of_block, of_ranks;
      const auto add = [](const std::vector<SequencePart>& parts, std::vector<std::int64_t>& to) {
        for (const SequencePart& p : parts) {
          for (std::int64_t i = 0; i < p.count; ++i) to.push_back(p.first + i);
        }
      };
      add(block_parts(s, kSequenceLength, b), of_block);
      for (std::int64_t u = 0; u < s.context_ulysses; ++u) {
        const std::size_t before = of_ranks.size();
        add(rank_parts(s, kSequenceLength, b * s.context_ulysses + u), of_ranks);
        EXPECT_EQ(of_ranks.size() - before, static_cast<std::size_t>(kSequenceLength / s.context));
      }
      EXPECT_EQ(of_ranks, of_block);
      for (const std::int64_t p : of_block) EXPECT_TRUE(seen.insert(p).second);
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), kSequenceLength);
  }
}

// Number of visible pairs; a pair at the edge of the mask counts half.
double counted(const std::vector<SequencePart>& queries, const std::vector<SequencePart>& keys, std::int64_t window) {
  double sum = 0;
  for (const SequencePart& q : queries) {
    for (const SequencePart& k : keys) {
      for (std::int64_t i = q.first; i < q.first + q.count; ++i) {
        for (std::int64_t j = k.first; j < k.first + k.count; ++j) {
          if (j > i || (window > 0 && j < i - window)) continue;
          sum += i == j || (window > 0 && i - j == window) ? 0.5 : 1;
        }
      }
    }
  }
  return sum;
}

TEST(Sequence, PairsAreThoseThatAreCounted) {
  for (const Strategy& s : layouts()) {
    for (const std::int64_t window : {0, 1, 7, 20, 48, 100}) {
      double sum = 0;
      for (std::int64_t b = 0; b < s.context_ring; ++b) {
        for (std::int64_t h = 0; h < s.context_ring; ++h) {
          const std::int64_t from = (b - h + s.context_ring) % s.context_ring;
          const auto queries = block_parts(s, kSequenceLength, b), keys = block_parts(s, kSequenceLength, from);
          const double pairs = pairs_of_block(s, kSequenceLength, b, h, window);
          EXPECT_DOUBLE_EQ(pairs, counted(queries, keys, window)) << s.context_ring << ' ' << window;
          sum += pairs;
        }
      }
      const double s2 = kSequenceLength * kSequenceLength / 2.0,
                   rest = std::max<double>(0, kSequenceLength - static_cast<double>(window));
      EXPECT_DOUBLE_EQ(sum, window == 0 ? s2 : s2 - rest * rest / 2);
    }
  }
}

// In zigzag order all blocks see equally many pairs at every hop; in plain order the last sees most. A window breaks
// the balance where it is shorter than the distance to the block's keys.
TEST(Sequence, ZigzagBlocksDoTheSame) {
  for (Strategy s : layouts()) {
    EXPECT_EQ(blocks_are_alike(s, kSequenceLength, 0), s.context_ring == 1 || s.context_zigzag);
    s.context_kind = "allgather";
    EXPECT_EQ(blocks_are_alike(s, kSequenceLength, 0), s.context_ring == 1 || s.context_zigzag);
    s.context_kind = "ring";
    if (s.context_ring > 1) {
      EXPECT_FALSE(blocks_are_alike(s, kSequenceLength, 5));
    }
  }
}

}  // namespace
}  // namespace orrery
