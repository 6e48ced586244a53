#include "exec/memory/rank.h"

#include <set>

#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/partition/rank_groups.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

using test::random_job;

// Every rank has its own index in each of its groups, and data-parallel replicas have the numbers that the layout gives
// them.
TEST(Rank, SitsInItsGroups) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto job = random_job(seed);
    if (job == nullptr) continue;
    SCOPED_TRACE(seed);
    const auto at = coordinates(job->spec.strategy);
    for (std::int64_t r = 0; r < job->plan.ranks; ++r) {
      const Rank rank = job->rank(r);
      EXPECT_EQ(rank.number, r);
      EXPECT_EQ(rank.replica, at[r].data);
      EXPECT_EQ(rank.plan.classes.size(), 1U);
      EXPECT_EQ(rank.position_in(Dimension::tensor).index, at[r].tensor);
      EXPECT_EQ(rank.position_in(Dimension::pipeline).index, at[r].pipeline);
      for (std::size_t d = 0; d < rank.plan.dimensions.size(); ++d) {
        const auto& group = rank.group(static_cast<Dimension>(d));
        const GroupPosition& seat = rank.positions[d];
        EXPECT_EQ(seat.size, static_cast<std::int64_t>(group.size()));
        ASSERT_LT(seat.index, seat.size);
        EXPECT_EQ(group[static_cast<std::size_t>(seat.index)], r);
      }
    }
  }
}

// A chunk's flat buffers hold a whole number of elements of the width with which the rank reads them.
TEST(Rank, WidthsFitTheBuffers) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto job = random_job(seed);
    if (job == nullptr) continue;
    SCOPED_TRACE(seed);
    const Rank rank = job->rank(0);
    const Schedule placement = test::placement_of(job->spec);
    const std::int64_t chunks = job->spec.strategy.virtual_stages * placement.copies;
    EXPECT_EQ(rank.states.size(), static_cast<std::size_t>(chunks + (placement.spreads_vocabulary() ? 2 : 0)));
    for (const std::uint32_t state : rank.states) {
      std::int64_t all = 0, own = 0;
      for (const PlacedParameter& p : rank.parameters.at(state)) all += p.local.out * p.local.in;
      for (const Piece& piece : rank.pieces.at(state)) own = std::max(own, piece.shard_first + piece.owned);
      const Block& block = rank.plan.blocks[rank.plan.frames[state].block];
      for (const std::uint16_t whole : {kParameters, kGradients, kBuckets}) {
        if (block.buffers[whole].bytes > 0) {
          EXPECT_EQ(block.buffers[whole].bytes, all * rank.state_width(whole)) << block.buffers[whole].name;
        }
      }
      for (const std::uint16_t shard : {kParameterShard, kGradientShard, kMaster, kMoment1, kMoment2}) {
        if (block.buffers[shard].bytes > 0) {
          EXPECT_GE(block.buffers[shard].bytes, own * rank.state_width(shard)) << block.buffers[shard].name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery
