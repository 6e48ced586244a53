#include "models/partition/job_seats.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Cluster cluster_of(const std::string& network) {
  return parse_spec("{model: gpt2, sequence: 64, cluster: {node: dgx-h100, nodes: 8" + network + "}}", "t.yaml")
      .cluster;
}

TEST(JobSeats, FollowThePlacement) {
  const Spec spec = parse_spec(
      "{model: gpt2, sequence: 64, cluster: {node: dgx-h100, nodes: 8, network: {leaf: {nodes: 4}, placement: "
      "scattered}}, strategy: {data: 64, global_batch: 64}}",
      "t.yaml");
  const Plan plan = make_plan(spec);
  const JobSeats seats(plan, spec.cluster, 8);
  EXPECT_FALSE(seats.in_order());
  EXPECT_EQ(seats.node_of(8), 1);
  EXPECT_EQ(seats.place_of(8), 4);  // the first node of the second leaf
  EXPECT_EQ(seats.domain_of(32, 8), 1);
}

TEST(DomainSizes, AreThoseWhoseLinksMayBeShort) {
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(domain_sizes(cluster_of("")), Sizes{});
  EXPECT_EQ(domain_sizes(cluster_of(", oversubscription: {above_gpus: 16, ratio: 4}")), Sizes{16});
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}}")), Sizes{}) << "all NICs' rate leaves a leaf";
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2, uplinks: 1}}")), Sizes{16});
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}, routing: {kind: ecmp}}")), Sizes{16});
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}, load: 0.5}")), Sizes{16});
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}, efficiency: 0.9}")), Sizes{16});
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}, latency_us: 1, pods: {gpus: 32, ratio: 1}}")),
            (Sizes{32, 16}));
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}, spine: {leaves: 2, ratio: 3}}")), (Sizes{16, 32}));
  EXPECT_EQ(domain_sizes(cluster_of(", network: {leaf: {nodes: 2}, sites: {nodes: 4, Gbps: 100, ms: 1}}")), Sizes{32});
}

TEST(GpusOfSets, AreAtMostANumberAboveAnyClusters) {
  const Cluster c = cluster_of("");
  EXPECT_EQ(gpus_of_sets(c, 4, 3), 96);
  EXPECT_EQ(gpus_of_sets(c, 1'000'000'000, 1'000'000'000), 1'000'000'000'000);
}

}  // namespace
}  // namespace orrery
