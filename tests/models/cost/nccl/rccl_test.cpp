#include "models/cost/nccl/rccl.h"

#include <cmath>

#include <gtest/gtest.h>

#include "models/spec/cluster.h"

namespace orrery {
namespace {

NcclModel model_on(const char* node, int nodes, int ranks_per_node) {
  return nccl_model(nccl_topology(find_cluster(node, 8), nodes, ranks_per_node));
}

// The payload bytes of a collective over its time, GB/s.
double rate(const NcclModel& m, CollectiveKind kind, Bytes bytes) {
  return static_cast<double>(bytes) / nccl_choose(m, kind, bytes).seconds / 1e9;
}

double bus_of_all_reduce(const NcclModel& m, Bytes bytes) {
  const double n = m.topology.ranks;
  return rate(m, CollectiveKind::all_reduce, bytes) * 2 * (n - 1) / n;
}

constexpr Bytes kLong = Bytes{8} << 30;

// All-reduces over all links of a node, and over several nodes (sources: models/data/gpus/mi300x.json, mi355x.json).
TEST(Rccl, RingsReachWhatWasMeasured) {
  EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi300x", 1, 8), kLong), 321.8, 15);
  EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi355x", 1, 8), kLong), 407, 5);
  EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi300x", 2, 8), kLong), 375, 12);
  EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi355x", 2, 8), kLong), 369, 8);
  EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi355x", 4, 8), kLong), 370, 8);
}

// Two GPUs have one of the seven links: 47.7 GB/s were measured on MI300X, where eight GPUs reach 313 to 330.
TEST(Rccl, SmallGroupsHaveOnlyTheirOwnLinks) {
  const double pair = bus_of_all_reduce(model_on("amd-mi300x", 1, 2), kLong);
  EXPECT_NEAR(pair, 47.7, 3);
  EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi300x", 1, 4), kLong), 3 * pair, 1);
  const NcclChoice send = nccl_point_to_point(model_on("amd-mi300x", 1, 2), true, Bytes{1} << 30);
  EXPECT_NEAR(send.nvlink_share, 1. / 7, .01) << "of all links of the GPU";
}

// A MI250X has three links to other packages and no link to most GPUs of its node: groups of any size have the 150 GB/s
// of these links together, neither seven links nor one.
TEST(Rccl, GpusWithFewLinksHaveThemInAnyGroup) {
  for (const int ranks : {2, 4, 8})
    EXPECT_NEAR(bus_of_all_reduce(model_on("amd-mi250x", 1, ranks), kLong), 150, 3) << ranks;
  EXPECT_NEAR(nccl_topology(find_cluster("amd-mi250x", 1), 1, 8).nvlink_GBps, 150, 1e-9);
}

TEST(Rccl, ShortMessagesTakeTheStepsOfTheRing) {
  const NcclModel m = model_on("amd-mi300x", 1, 8);
  EXPECT_NEAR(1e6 * nccl_choose(m, CollectiveKind::all_reduce, 65536).seconds, 44.5, 4);
  EXPECT_NEAR(1e6 * nccl_choose(m, CollectiveKind::all_reduce, 16777216).seconds, 152.9, 20);
  EXPECT_NEAR(1e6 * nccl_choose(m, CollectiveKind::all_to_all, 1048576).seconds, 46.6, 5);
}

TEST(Rccl, ExchangesReachWhatWasMeasured) {
  EXPECT_NEAR(rate(model_on("amd-mi355x", 1, 8), CollectiveKind::all_to_all, kLong), 412, 15);
  EXPECT_NEAR(rate(model_on("amd-mi355x", 2, 8), CollectiveKind::all_to_all, kLong), 92.4, 6);
}

TEST(Rccl, IsOnlyForGpusWithDirectLinks) {
  EXPECT_FALSE(is_rccl(nccl_topology(find_cluster("dgx-h100", 2), 2, 8)));
  Cluster apart = find_cluster("amd-mi300x", 2);
  apart.nvlink_domain = 1;
  EXPECT_FALSE(is_rccl(nccl_topology(apart, 1, 8))) << "over PCIe";
}

}  // namespace
}  // namespace orrery
