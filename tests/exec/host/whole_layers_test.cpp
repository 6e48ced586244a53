#include "exec/host/whole_layers.h"

#include <vector>

#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "tests/exec/jobs.h"

namespace orrery {
namespace {

const std::string kThreeLayers =
    "name: three, layers: 3, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 64";

// The first element of each layer in the flat buffers of the first chunk.
std::vector<std::int64_t> layers_of(const Rank& rank) {
  std::vector<std::int64_t> firsts;
  for (const Frame& f : rank.plan.frames) {
    if (f.micro_batch == 0 && rank.plan.blocks[f.block].role == BlockRole::layer) firsts.push_back(f.base);
  }
  return firsts;
}

// The members' runs of a layer cover it once, each run in its member's share, and shares have equal places for all.
TEST(LayerRound, CutsLayersOverTheMembers) {
  for (const char* sharding : {"none", "zero1, bucket_MiB: 0.005", "zero2", "zero3", "fsdp"}) {
    SCOPED_TRACE(sharding);
    const test::Job job =
        test::tiny_job("data: 2, global_batch: 2, optimizer: muon, sharding: " + std::string(sharding), kThreeLayers);
    const Rank rank = job.rank(0);
    const std::vector<std::int64_t> layers = layers_of(rank);
    const LayerRound round(rank, rank.states.front(), layers[0]);
    EXPECT_EQ(round.layers(), (std::vector{layers[0], layers[1]}));
    EXPECT_EQ(LayerRound(rank, rank.states.front(), layers[2]).layers(), (std::vector{layers[2]}));
    EXPECT_EQ(round.sharded(), sharding != std::string("none"));
    std::vector<int> covered(static_cast<std::size_t>(round.block().parameter_elements));
    for (std::int64_t member = 0; member < round.members(); ++member) {
      for (const OwnedRun& run : round.runs(layers[1], member)) {
        EXPECT_LE(run.share + run.count, round.share());
        for (std::int64_t i = 0; i < run.count; ++i) ++covered[run.flat - layers[1] + i];
      }
    }
    EXPECT_EQ(covered, std::vector<int>(covered.size(), 1));
    const Bytes buffer = rank.plan.blocks[rank.plan.frames[rank.states.front()].block].buffers[kBuckets].bytes;
    EXPECT_EQ(buffer, 2 * round.area() * rank.plan.element_bytes);
  }
}

// A member's runs are its pieces of the layer, where its shards have them.
TEST(LayerRound, KnowsShards) {
  const test::Job job = test::tiny_job("data: 2, global_batch: 2, optimizer: muon, sharding: fsdp", kThreeLayers);
  for (std::int64_t number = 0; number < 2; ++number) {
    const Rank rank = job.rank(number);
    const std::int64_t layer = layers_of(rank)[1];
    const std::vector<OwnedRun> runs = LayerRound(rank, rank.states.front(), layer).runs(layer, number);
    ASSERT_EQ(runs.size(), 1U);
    bool found = false;
    for (const Piece& piece : rank.pieces.at(rank.states.front())) {
      if (piece.owned_first != runs[0].flat) continue;
      found = true;
      EXPECT_EQ(piece.owned, runs[0].count);
      EXPECT_EQ(piece.shard_first, runs[0].shard);
    }
    EXPECT_TRUE(found);
  }
}

}  // namespace
}  // namespace orrery
