#include "models/layout/surroundings.h"

#include <set>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"

namespace orrery {
namespace {

std::set<std::uint32_t> kinds_of(const std::string& cluster, const std::string& strategy) {
  const Spec spec = parse_spec(
      "model: {name: t, layers: 8, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096}\n"
      "sequence: 256\ncluster: {node: dgx-h100, " +
          cluster + "}\nstrategy: {" + strategy + "}\n",
      "lie.yaml");
  const std::vector<std::uint32_t> all = surroundings(Draft(spec));
  return {all.begin(), all.end()};
}

TEST(Surroundings, AreEmptyWhereAllReplicasLieAlike) {
  EXPECT_TRUE(kinds_of("nodes: 2", "tensor: 2, pipeline: 2, data: 4, global_batch: 8").empty());
  EXPECT_TRUE(kinds_of("nodes: 8", "tensor: 8, pipeline: 4, data: 2, global_batch: 8").empty());
}

// One of three replicas has its stages on two nodes: each of its stages has a number.
TEST(Surroundings, TellPipelinesOverNodes) {
  EXPECT_EQ(kinds_of("nodes: 2", "tensor: 2, pipeline: 2, data: 3, global_batch: 6").size(), 3U);
}

// A tensor group of one replica is on two nodes.
TEST(Surroundings, TellGroupsOverNodes) {
  EXPECT_GE(kinds_of("nodes: 2", "tensor: 4, data: 3, global_batch: 6, rank_order: dp-tp-cp-pp").size(), 2U);
}

TEST(Surroundings, TellPipelinesOverLeaves) {
  const std::string strategy = "tensor: 8, pipeline: 2, data: 3, global_batch: 6";
  EXPECT_TRUE(kinds_of("nodes: 6", strategy).empty());
  EXPECT_TRUE(kinds_of("nodes: 6, network: {leaf: {nodes: 4}}", strategy).empty()) << "the spine carries all";
  // The first stages are on nodes 0 to 2, the second ones on 3 to 5; only the second replica's are on two leaves.
  EXPECT_EQ(kinds_of("nodes: 6, network: {leaf: {nodes: 4, uplinks: 2}}", strategy).size(), 3U);
}

// A NIC of two GPUs serves two ranks of one stage, or one of each of two stages.
TEST(Surroundings, TellWhoIsOnTheSameNic) {
  EXPECT_FALSE(kinds_of("nodes: 2, nics: 4", "pipeline: 5, data: 3, global_batch: 6").empty());
}

}  // namespace
}  // namespace orrery
