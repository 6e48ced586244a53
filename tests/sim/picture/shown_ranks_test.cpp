// The ranks that a picture shows.
#include "sim/picture/shown_ranks.h"

#include <set>

#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

ShownRanks shown_of(const std::string& strategy, const std::string& model = test::kSmall) {
  const Spec spec = test::spec_of(model, strategy, 128);
  return shown_ranks(spec, make_plan(spec));
}

std::set<std::int64_t> ranks_in(const ShownRanks& shown) {
  std::set<std::int64_t> ranks;
  for (const StageRanks& stage : shown.stages) {
    for (const ShownRank& r : stage.ranks) EXPECT_TRUE(ranks.insert(r.rank).second);
  }
  return ranks;
}

TEST(ShownRanks, FewRanksAreAllShown) {
  const ShownRanks shown = shown_of("tensor: 2, pipeline: 4, data: 8, global_batch: 32");
  EXPECT_EQ(shown.left_out, "");
  EXPECT_EQ(ranks_in(shown).size(), 64U);
  ASSERT_EQ(shown.stages.size(), 4U);
  EXPECT_EQ(shown.stages[1].name, "stage 1");
  EXPECT_EQ(shown.stages[1].ranks.front().node, 2);  // ranks 16 to 31 are on nodes 2 and 3
  EXPECT_EQ(shown.stages[1].ranks.front().rank, 16);
}

// Replicas are left out first, then stages in the middle, then tensor ranks.
TEST(ShownRanks, OfManyRanksReplicasAreLeftOutFirst) {
  const ShownRanks data = shown_of("tensor: 8, pipeline: 2, data: 16, global_batch: 32");
  EXPECT_EQ(ranks_in(data).size(), 64U);
  EXPECT_EQ(data.stages.size(), 2U);
  EXPECT_EQ(data.stages[0].ranks.size(), 32U);
  EXPECT_EQ(data.left_out,
            "64 of 256 ranks are shown: 4 of 16 data-parallel replicas. Groups of which members are left out say so.");
  const std::string deep = "name: deep, layers: 32, hidden: 64, heads: 8, head_dim: 8, feed_forward: 256, vocab: 256";
  const ShownRanks stages = shown_of("tensor: 8, pipeline: 32, data: 2, global_batch: 64", deep);
  EXPECT_EQ(ranks_in(stages).size(), 64U);
  ASSERT_EQ(stages.stages.size(), 8U);
  EXPECT_EQ(stages.stages[3].name, "stage 3");
  EXPECT_EQ(stages.stages[4].name, "stage 28");
  EXPECT_NE(stages.left_out.find("1 of 2 data-parallel replicas, 8 of 32 stages"), std::string::npos);
  const std::string wide =
      "name: wide, layers: 4, hidden: 1024, heads: 128, head_dim: 8, feed_forward: 1024, vocab: 1024";
  const ShownRanks tensor = shown_of("tensor: 128, pipeline: 4, global_batch: 4", wide);
  EXPECT_EQ(ranks_in(tensor).size(), 64U);
  EXPECT_EQ(tensor.stages.size(), 2U);
  EXPECT_NE(tensor.left_out.find("32 of 128 tensor ranks"), std::string::npos);
}

TEST(ShownRanks, ServersAreTheLastRow) {
  const ShownRanks shown = shown_of(
      "data: 4, sharding: parameter-server, parameter_server: {servers: 2}, "
      "global_batch: 4, clip: 0");
  ASSERT_EQ(shown.stages.size(), 2U);
  EXPECT_EQ(shown.stages[1].name, "servers");
  EXPECT_EQ(shown.stages[1].ranks.size(), 2U);
  EXPECT_TRUE(shown.stages[1].ranks[0].server);
}

TEST(ShownRanks, CoordinatesNameWhatHasSeveralRanks) {
  const Spec spec = test::spec_of(test::kSmall, "tensor: 2, context: 2, data: 2, global_batch: 2");
  const ShownRanks shown = shown_ranks(spec, make_plan(spec));
  EXPECT_EQ(coordinates_text(spec, shown.stages[0].ranks[7]), "t1 c1 d1");
  const Spec one = test::spec_of(test::kSmall, "global_batch: 1");
  EXPECT_EQ(coordinates_text(one, shown_ranks(one, make_plan(one)).stages[0].ranks[0]), "");
}

// The layers of a 2.5D grid are tensor groups of their own.
TEST(ShownRanks, LayersOfAGridAreNamed) {
  const Spec spec = test::spec_of("layers: 2, hidden: 64, heads: 8, vocab: 256, feed_forward: 128, gated: false",
                                  "tensor: 8, tensor_kind: 2.5d, micro_batch: 8, global_batch: 8");
  const ShownRanks shown = shown_ranks(spec, make_plan(spec));
  EXPECT_EQ(coordinates_text(spec, shown.stages[0].ranks[6]), "t2 x1");
}

}  // namespace
}  // namespace orrery
