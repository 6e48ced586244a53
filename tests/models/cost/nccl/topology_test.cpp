#include "models/cost/nccl/topology.h"

#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/base/error.h"

namespace orrery {
namespace {

Cluster cluster(double nvlink_GBps, double pcie_GBps, int gpus_per_node, int nvlink_domain, int nics, double nic_Gbps,
                int gpus_per_pcie_switch, std::int64_t nodes = 64) {
  Cluster c;
  c.gpu.memory_GBps = 3000;
  c.gpu.nvlink_GBps = nvlink_GBps;
  c.gpu.pcie_GBps = pcie_GBps;
  c.gpus_per_node = gpus_per_node;
  c.nodes = nodes;
  c.nics = nics;
  c.nic_Gbps = nic_Gbps;
  c.nvlink_domain = nvlink_domain;
  c.gpus_per_pcie_switch = gpus_per_pcie_switch;
  c.host = Host{1 << 30, 400};
  c.stores[index_of(MemoryTier::nvme)] = Store{1 << 30, 50, 26};
  return c;
}

// Machines of different shapes, with the numbers that their vendors state.
Cluster dgx_h100() { return cluster(450, 63, 8, 8, 8, 400, 1); }
Cluster dgx_a100() { return cluster(300, 31, 8, 8, 8, 200, 2); }
Cluster v100_pcie() { return cluster(0, 15.75, 4, 0, 1, 100, 2); }
Cluster bridged_pairs() { return cluster(300, 31, 4, 2, 2, 200, 2); }
Cluster nvl72() { return cluster(900, 63, 4, 72, 4, 400, 1); }
Cluster four_nics() { return cluster(450, 63, 8, 8, 4, 200, 1); }   // as gcp-a3-high
Cluster many_nics() { return cluster(450, 63, 8, 8, 32, 100, 2); }  // as aws-p5
Cluster oversubscribed() {
  Cluster c = dgx_h100();
  c.oversubscribed_above_gpus = 256;
  c.oversubscription = 4;
  return c;
}

std::string way(const Route& r) {
  if (r.hops.empty()) return "";
  std::string text = to_string(r.hops.front().from);
  for (const Hop& hop : r.hops) text += " > " + to_string(hop.to);
  return text;
}

struct Row {
  const char* name;
  Cluster (*cluster)();
  std::int64_t from, to;
  const char* way;
  double GBps;
  Picoseconds latency;
};

const Row kRows[] = {
    {"same_gpu", dgx_h100, 3, 3, "", 3000, 0},
    {"nvlink", dgx_h100, 0, 7, "gpu 0 > nvswitch 0 > gpu 7", 450, 600'000},
    {"second_domain", dgx_h100, 9, 14, "gpu 9 > nvswitch 1 > gpu 14", 450, 600'000},
    {"nodes", dgx_h100, 1, 10, "gpu 1 > pcie_switch 0.1 > nic 0.1 > leaf 0 > nic 1.2 > pcie_switch 1.2 > gpu 10", 50,
     2'700'000},
    {"two_gpus_a_switch", dgx_a100, 3, 8,
     "gpu 3 > pcie_switch 0.1 > nic 0.3 > leaf 0 > nic 1.0 > pcie_switch 1.0 > gpu 8", 25, 2'700'000},
    {"same_pcie_switch", v100_pcie, 0, 1, "gpu 0 > pcie_switch 0.0 > gpu 1", 15.75, 1'000'000},
    {"other_pcie_switch", v100_pcie, 1, 2, "gpu 1 > pcie_switch 0.0 > cpu 0.0 > pcie_switch 0.1 > gpu 2", 15.75,
     2'000'000},
    {"far_from_the_nic", v100_pcie, 3, 4,
     "gpu 3 > pcie_switch 0.1 > cpu 0.0 > pcie_switch 0.0 > nic 0.0 > leaf 0 > nic 1.0 > pcie_switch 1.0 > gpu 4", 12.5,
     3'700'000},
    {"bridge", bridged_pairs, 2, 3, "gpu 2 > nvswitch 1 > gpu 3", 300, 600'000},
    {"no_bridge", bridged_pairs, 1, 2, "gpu 1 > pcie_switch 0.0 > cpu 0.0 > pcie_switch 0.1 > gpu 2", 31, 2'000'000},
    // A job on 32 nodes lies in two racks of sixteen.
    {"domain_beyond_the_node", nvl72, 2, 63, "gpu 2 > nvswitch 0 > gpu 63", 900, 600'000},
    {"domains", nvl72, 63, 64, "gpu 63 > pcie_switch 15.3 > nic 15.3 > leaf 0 > nic 16.0 > pcie_switch 16.0 > gpu 64",
     50, 2'700'000},
    // A GPU whose switch has no NIC goes through a peer that has one (NCCL's PXN).
    {"through_a_peer", four_nics, 1, 8,
     "gpu 1 > nvswitch 0 > gpu 0 > pcie_switch 0.0 > nic 0.0 > leaf 0 > nic 1.0 > pcie_switch 1.0 > gpu 8", 25,
     3'300'000},
    {"nics_of_one_gpu", many_nics, 0, 8,
     "gpu 0 > pcie_switch 0.0 > nic 0.0 > leaf 0 > nic 1.0 > pcie_switch 1.0 > gpu 8", 50, 2'700'000},
    {"below_the_limit", oversubscribed, 0, 255,
     "gpu 0 > pcie_switch 0.0 > nic 0.0 > leaf 0 > nic 31.7 > pcie_switch 31.7 > gpu 255", 50, 2'700'000},
    {"above_the_limit", oversubscribed, 0, 256,
     "gpu 0 > pcie_switch 0.0 > nic 0.0 > leaf 0 > spine 0 > leaf 1 > nic 32.0 > pcie_switch 32.0 > gpu 256", 12.5,
     3'900'000},
};

void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class Routes : public testing::TestWithParam<Row> {};

TEST_P(Routes, CrossTheExpectedLinks) {
  const Row& row = GetParam();
  const Route r = route(row.cluster(), row.from, row.to);
  EXPECT_EQ(way(r), row.way);
  EXPECT_DOUBLE_EQ(r.GBps, row.GBps);
  EXPECT_EQ(r.latency, row.latency);
}

INSTANTIATE_TEST_SUITE_P(Table, Routes, testing::ValuesIn(kRows), [](const auto& row) { return row.param.name; });

TEST(Topology, HostMemoryAndDrives) {
  const Cluster c = dgx_h100();
  const Route down = route(c, gpu_place(c, 9), dram_place(1));
  EXPECT_EQ(way(down), "gpu 9 > pcie_switch 1.1 > cpu 1.0 > dram 1.0");
  EXPECT_DOUBLE_EQ(down.GBps, 63);
  EXPECT_DOUBLE_EQ(route(c, gpu_place(c, 9), store_place(1, MemoryTier::nvme)).GBps, 26);
  EXPECT_DOUBLE_EQ(route(c, store_place(1, MemoryTier::nvme), gpu_place(c, 9)).GBps, 50);
  EXPECT_DOUBLE_EQ(route(c, store_place(1, MemoryTier::nvme), dram_place(1)).GBps, 50);
}

std::string message(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Topology, SaysWhatIsMissing) {
  Cluster c = dgx_h100();
  EXPECT_EQ(message([&] { route(c, 0, 512); }), "cluster: there is no gpu 512; it has 512");
  EXPECT_EQ(message([&] { route(c, dram_place(64), dram_place(64)); }), "cluster: there is no node 64; it has 64");
  c.host.reset();
  EXPECT_EQ(message([&] { route(c, gpu_place(c, 0), dram_place(0)); }),
            "cluster: there is no dram 0.0; give its sizes");
  c.nics = 0;
  EXPECT_EQ(message([&] { route(c, 0, 8); }), "cluster: no way from gpu 0 to gpu 8; give it NICs");
}

TEST(Topology, GpusOfOneSwitchHaveNicsOfTheirOwn) {
  for (const Cluster& c : {dgx_a100(), many_nics(), dgx_h100()}) {
    std::set<Place> nics;
    for (std::int64_t gpu = 0; gpu < c.gpus_per_node; ++gpu) {
      for (const Hop& hop : route(c, gpu, c.gpus_per_node + gpu).hops) {
        if (hop.from.part == PlaceKind::pcie_switch && hop.to.part == PlaceKind::nic) nics.insert(hop.to);
      }
    }
    EXPECT_EQ(nics.size(), 8U);
  }
}

using MakeCluster = Cluster (*)();
class EveryCluster : public testing::TestWithParam<MakeCluster> {
 protected:
  // A few GPUs of the first nodes, of later ones and the last.
  std::vector<std::int64_t> sample(const Cluster& c) const {
    const std::int64_t g = c.gpus_per_node;
    return {0, 1, g - 1, g, g + 1, 2 * g - 1, 18 * g, 18 * g + 1, 33 * g, c.nodes * g - 1};
  }
};

TEST_P(EveryCluster, IsTheSameInBothDirections) {
  const Cluster c = GetParam()();
  for (const std::int64_t a : sample(c)) {
    for (const std::int64_t b : sample(c)) {
      const Route there = route(c, a, b), back = route(c, b, a);
      ASSERT_EQ(there.latency, back.latency) << a << ' ' << b;
      ASSERT_EQ(there.GBps, back.GBps) << a << ' ' << b;
      ASSERT_EQ(there.hops.size(), back.hops.size()) << a << ' ' << b;
    }
  }
}

TEST_P(EveryCluster, HasNoShortCutsOverAThirdGpu) {
  const Cluster c = GetParam()();
  for (const std::int64_t a : sample(c)) {
    for (const std::int64_t b : sample(c)) {
      for (const std::int64_t via : sample(c)) {
        ASSERT_LE(route(c, a, b).latency, route(c, a, via).latency + route(c, via, b).latency) << a << ' ' << b;
      }
    }
  }
}

TEST_P(EveryCluster, RoutesAreChainsFromStartToEnd) {
  const Cluster c = GetParam()();
  for (const std::int64_t a : sample(c)) {
    for (const std::int64_t b : sample(c)) {
      const Route r = route(c, a, b);
      Place at = gpu_place(c, a);
      for (const Hop& hop : r.hops) {
        ASSERT_EQ(hop.from, at);
        ASSERT_GE(hop.GBps, r.GBps);
        ASSERT_GT(r.GBps, 0);
        at = hop.to;
      }
      ASSERT_EQ(at, gpu_place(c, b));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, EveryCluster,
                         testing::Values(dgx_h100, dgx_a100, v100_pcie, bridged_pairs, nvl72, four_nics, many_nics,
                                         oversubscribed));

}  // namespace
}  // namespace orrery
