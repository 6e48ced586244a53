#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

Network above_leaves(const std::string& keys) {
  return *parse_spec("model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 64, network: {leaf: {nodes: 2}, " +
                         keys + "}}\nstrategy: {data: 8}\n",
                     "spine.yaml")
              .cluster.network;
}

std::string spine_refusal(const std::string& keys) {
  try {
    above_leaves(keys);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

void expect_spine_refused(const char* keys, const char* what) {
  EXPECT_NE(spine_refusal(keys).find(what), std::string::npos) << keys << ": " << spine_refusal(keys);
}

TEST(Spine, IsOneLevelOrAList) {
  EXPECT_EQ(above_leaves("spine: {leaves: 4, ratio: 2}").spine_leaves, 4);
  const Network n = above_leaves("spine: [{leaves: 4, ratio: 2}, {leaves: 16, ratio: 7}, {leaves: 32}]");
  EXPECT_EQ(n.spine_leaves, 4);
  EXPECT_EQ(n.spine_ratio, 2);
  ASSERT_EQ(n.upper_spine.size(), 2);
  EXPECT_EQ(n.upper_spine[0].leaves, 16);
  EXPECT_EQ(n.upper_spine[0].ratio, 7);
  EXPECT_EQ(n.upper_spine[1].ratio, 1);
  expect_spine_refused("spine: [{leaves: 4}, {leaves: 6}]", "6 is no multiple of the 4 leaves of a part below");
  expect_spine_refused("spine: [{leaves: 4}, {leaves: 4}]", "4 is no multiple of the 4");
  expect_spine_refused("spine: [{leaves: 1}, {leaves: 4}]", "joins 2 leaves or more; leave this level out");
  expect_spine_refused("spine: [{ratio: 2}]", "spine.leaves: missing");
  expect_spine_refused("spine: []", "0 levels are not 1 to 4");
  expect_spine_refused("spine: [{leaves: 4}, {leaves: 8, ratio: 0.5}]", "spine.ratio: 0.5 is below 1");
}

TEST(Spine, OfAGroupHasItsSwitches) {
  const Network n = above_leaves("kind: dragonfly+, groups: {leaves: 4, spines: 2, links: 8}");
  EXPECT_EQ(n.kind, NetworkKind::dragonfly_plus);
  EXPECT_EQ(n.groups.spines, 2);
  expect_spine_refused("kind: dragonfly+, groups: {leaves: 4, links: 8}", "groups.spines: missing");
  expect_spine_refused("kind: dragonfly, groups: {leaves: 4, spines: 2, links: 8}",
                       "needs cluster.network.kind: dragonfly+");
  expect_spine_refused("groups: {leaves: 4, links: 8}", "needs cluster.network.kind: dragonfly or dragonfly+");
  expect_spine_refused("kind: dragonfly, groups: {leaves: 4, links: 8}, routing: {kind: pinned}",
                       "take adaptive, or kind: dragonfly+");
  EXPECT_EQ(above_leaves("routing: {kind: pinned}").routing, Routing::pinned);
}

TEST(Spine, HasALatency) {
  EXPECT_EQ(above_leaves("latency_us: 0.5").latency_us, .5);
  expect_spine_refused("latency_us: -1", "latency_us: -1 is no time");
}

TEST(Neighbours, LoadSomeLinksEvenlyOrInBursts) {
  const Network n = above_leaves("spine: {leaves: 4}, neighbours: {load: 0.3, where: spine, burst_ms: 10}");
  EXPECT_EQ(n.loaded, LoadedLinks::spine);
  EXPECT_EQ(n.burst_ms, 10);
  EXPECT_EQ(left_on_leaves(n), 1);
  EXPECT_EQ(left_above(n), .7);
  EXPECT_EQ(above_leaves("load: 0.3, neighbours: {where: leaf}").loaded, LoadedLinks::leaf);
  expect_spine_refused("neighbours: {load: 0.3, where: spine}", "no links are known above those of leaves");
  expect_spine_refused("neighbours: {load: 0.3, where: roof}", "roof");
  expect_spine_refused("neighbours: {where: leaf}", "it needs a load");
  expect_spine_refused("neighbours: {load: 0, burst_ms: 10}", "bursts need a load");
  expect_spine_refused("neighbours: {load: 0.1, burst_ms: -1}", "burst_ms: -1 is not 0 or 0.001 to 20 ms");
  expect_spine_refused("neighbours: {load: 0.1, burst_ms: 100}", "burst_ms: 100 is not 0 or 0.001 to 20 ms");
  expect_spine_refused("neighbours: {load: 0.1, burst_ms: 1, jobs: [a.yaml]}", "beside jobs");
}

}  // namespace
}  // namespace orrery
