#include "models/cost/nccl/model.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/models/cost/nccl/reference.h"

namespace orrery {
namespace {

bool near(double got, double want) { return std::abs(got - want) <= .02 + .002 * want; }

void expect_same(const NcclGraph& got, const NcclGraph& want, const std::string& where) {
  EXPECT_EQ(got.channels, want.channels) << where;
  EXPECT_EQ(got.intra_GBps, want.intra_GBps) << where;
  EXPECT_EQ(got.inter_GBps, want.inter_GBps) << where;
  EXPECT_EQ(got.intra, want.intra) << where;
  EXPECT_TRUE(got.inter == want.inter || want.channels == 0) << where;
  EXPECT_EQ(got.plain_tree, want.plain_tree) << where;
  EXPECT_EQ(got.same_channels, want.same_channels) << where;
}

TEST(Nccl, TheSearchFindsWhatTheLibraryFinds) {
  const auto all = nccl_references();
  EXPECT_EQ(all.size(), 55u);
  for (const NcclReference& r : all) {
    const NcclGraphs got = nccl_graphs(r.topology);
    expect_same(got.ring, r.graphs.ring, "ring " + r.title);
    expect_same(got.tree, r.graphs.tree, "tree " + r.title);
    expect_same(got.nvls, r.graphs.nvls, "nvls " + r.title);
    EXPECT_EQ(got.collective_channels, r.graphs.collective_channels) << r.title;
    EXPECT_EQ(got.nvls_channels, r.graphs.nvls_channels) << r.title;
  }
}

TEST(Nccl, TheTableIsTheLibrarys) {
  std::size_t rows = 0;
  for (const NcclReference& r : nccl_references()) {
    const NcclModel m{r.topology, r.graphs, nccl_table(r.topology, r.graphs)};
    std::set<std::tuple<CollectiveKind, NcclAlgorithm, NcclProtocol>> listed;
    for (const NcclReference::Row& want : r.rows) {
      const NcclRow& got = m.row(want.kind, want.algorithm, want.protocol);
      const auto where = r.title + " " + std::string(name_of(want.kind)) + " " + std::string(name_of(want.algorithm)) +
                         " " + std::string(name_of(want.protocol));
      EXPECT_TRUE(near(got.latency_us, want.latency_us)) << where << " " << got.latency_us << " " << want.latency_us;
      EXPECT_TRUE(near(got.bandwidth_GBps, want.bandwidth_GBps))
          << where << " " << got.bandwidth_GBps << " " << want.bandwidth_GBps;
      listed.insert({want.kind, want.algorithm, want.protocol});
      ++rows;
    }
    for (const CollectiveKind k : {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                   CollectiveKind::reduce_scatter, CollectiveKind::broadcast}) {
      for (int i = 0; i < kNcclAlgorithms * kNcclProtocols; ++i) {
        const auto a = static_cast<NcclAlgorithm>(i / kNcclProtocols);
        const auto p = static_cast<NcclProtocol>(i % kNcclProtocols);
        EXPECT_EQ(m.row(k, a, p).bandwidth_GBps > 0, listed.count({k, a, p}) > 0)
            << r.title << name_of(k) << name_of(a);
      }
    }
  }
  EXPECT_EQ(rows, 862u);
}

// The model chooses the algorithm and protocol that NCCL chose. Sizes in the reference file are powers of two of at
// least 256 B, which it prints as 0K.
TEST(Nccl, TheChoiceIsTheLibrarys) {
  std::size_t choices = 0;
  for (const NcclReference& r : nccl_references()) {
    const NcclModel m = nccl_model(r.topology);
    for (std::size_t i = 0; i < r.choices.size(); ++i) {
      const NcclReference::Choice& want = r.choices[i];
      const Bytes from = std::max<Bytes>(want.from, 256);
      const bool last = i + 1 == r.choices.size() || r.choices[i + 1].kind != want.kind;
      const Bytes to = last ? from : std::max<Bytes>(from, r.choices[i + 1].from / 2);
      for (Bytes bytes = from; bytes <= to; bytes *= 2) {
        const NcclChoice got = nccl_choose(m, want.kind, bytes);
        EXPECT_EQ(got.algorithm, want.algorithm) << r.title << " " << name_of(want.kind) << " " << bytes;
        EXPECT_EQ(got.protocol, want.protocol) << r.title << " " << name_of(want.kind) << " " << bytes;
      }
      const double us = nccl_choose(m, want.kind, from).nccl_seconds * 1e6;
      EXPECT_NEAR(us, want.time_us, .051 + 1e-4 * want.time_us) << r.title << " " << name_of(want.kind) << " " << from;
      ++choices;
    }
    for (const NcclReference::Time& want : r.times) {
      EXPECT_NEAR(nccl_choose(m, want.kind, want.bytes).nccl_seconds * 1e6, want.time_us, .5 + 1e-4 * want.time_us);
    }
  }
  EXPECT_EQ(choices, 669u);
}

// The shares of NICs and NVLinks that a collective uses while it runs, in bytes: in a ring every link carries what a
// rank sends, a tree sends the buffer up and down, a switch that sums (NVLS) needs it once.
TEST(Nccl, SharesAreBytesOverTimeAndBandwidth) {
  std::set<std::pair<NcclAlgorithm, int>> seen;
  for (const NcclReference& r : nccl_references()) {
    const NcclModel m = nccl_model(r.topology);
    const NcclTopology& t = m.topology;
    if (t.ranks < 2 || t.nodes > 2) continue;
    for (Bytes bytes = 1 << 10; bytes <= Bytes{1} << 32; bytes *= 4) {
      const NcclChoice c = nccl_choose(m, CollectiveKind::all_reduce, bytes);
      const bool ring = c.algorithm == NcclAlgorithm::ring, tree = c.algorithm == NcclAlgorithm::tree;
      const double buffer = static_cast<double>(bytes), n = t.ranks;
      const double around = 2 * buffer * (n - 1) / n;
      // with two nodes, each sends half of it up and half down
      const double nic = t.nodes < 2 ? 0 : ring ? around : buffer;
      const double wire = t.ranks_per_node() < 2 ? 0 : ring ? around : tree ? 2 * buffer : buffer;
      const auto share = [&](double moved, double GBps) {
        return GBps > 0 ? std::min(1.0, moved / (c.seconds * GBps * 1e9)) : 0;
      };
      const std::string what = r.title + " " + std::string(name_of(c.algorithm)) + " " + std::to_string(bytes);
      EXPECT_NEAR(c.nic_share, share(nic, t.nics * t.nic_GBps), 1e-3) << what;
      EXPECT_NEAR(c.nvlink_share, share(wire, t.nvlink_GBps), 1e-3) << what;
      if (c.nic_share < 1 && c.nvlink_share < 1) seen.insert({c.algorithm, t.nodes});
    }
  }
  using A = NcclAlgorithm;
  for (const auto& [algorithm, nodes] :
       {std::pair(A::ring, 1), {A::ring, 2}, {A::tree, 2}, {A::nvls, 1}, {A::nvls_tree, 2}})
    EXPECT_TRUE(seen.contains({algorithm, nodes})) << name_of(algorithm) << " " << nodes;
}

Cluster cluster(int compute_capability, int links, int gpus, int domain, int nics, double Gbps) {
  Cluster c;
  c.gpu.compute_capability = compute_capability;
  c.gpu.nvlink_links = links;
  c.gpu.nvlink_GBps = 25.0 * links;
  c.gpu.pcie_GBps = compute_capability >= 90 ? 63 : 31;
  c.gpus_per_node = gpus;
  c.nvlink_domain = domain;
  c.nics = nics;
  c.nic_Gbps = Gbps;
  return c;
}

TEST(Nccl, ClustersBecomeTheTopologiesOfTheReference) {
  const Cluster h100 = cluster(90, 18, 8, 8, 8, 400);
  Cluster a100 = cluster(80, 12, 8, 8, 8, 200);
  a100.amd_cpu = true;
  a100.gpus_per_pcie_switch = 2;
  const Cluster b200 = cluster(100, 18, 8, 8, 8, 400);
  struct Case {
    std::string_view title;
    Cluster cluster;
    int ranks_per_node;
  };
  const Case cases[] = {{"dgxh100.xml", h100, 8},      {"dgxa100.xml", a100, 8},
                        {"b200.xml", b200, 8},         {"h800.xml", cluster(90, 8, 8, 8, 8, 400), 8},
                        {"h100_tp4.xml", h100, 4},     {"h100_tp2.xml", h100, 2},
                        {"dgxh100_1of8.xml", h100, 1}, {"h100_4nic.xml", cluster(90, 18, 8, 8, 4, 400), 8}};
  std::size_t found = 0;
  for (const NcclReference& r : nccl_references()) {
    for (const Case& c : cases) {
      if (!r.title.starts_with(std::string(c.title) + " ")) continue;
      const NcclTopology t = nccl_topology(c.cluster, r.topology.nodes, c.ranks_per_node);
      EXPECT_EQ(t.ranks, r.topology.ranks) << r.title;
      expect_same(nccl_graphs(t).ring, r.graphs.ring, r.title);
      expect_same(nccl_graphs(t).tree, r.graphs.tree, r.title);
      ++found;
    }
  }
  EXPECT_EQ(found, 40u);
}

TEST(Nccl, MembersOfUnevenNodes) {
  const Cluster c = cluster(90, 18, 8, 8, 8, 400);
  const int members[] = {8, 8, 4};
  const NcclTopology t = nccl_topology(c, members);
  EXPECT_EQ(t.nodes, 3);
  EXPECT_EQ(t.ranks, 20);
  EXPECT_EQ(t.nics, 4);
  EXPECT_EQ(nccl_topology(c, std::span<const int>()).ranks, 1);
}

// An older release chooses only among the algorithms and protocols that it has: LL128 came in 2.5, NVLS in 2.17, PAT in
// 2.23.
TEST(Nccl, OlderReleasesKnowLess) {
  const auto has = [](int ranks_per_node, std::int64_t minor, CollectiveKind kind, NcclAlgorithm a, NcclProtocol p) {
    NcclTopology t = nccl_topology(cluster(90, 18, 8, 8, 8, 400), ranks_per_node == 1 ? 4 : 1, ranks_per_node);
    t.nccl_minor = minor;
    return nccl_time_us(nccl_model(t), kind, a, p, 1 << 20) > 0;
  };
  using A = NcclAlgorithm;
  using P = NcclProtocol;
  constexpr auto kReduce = CollectiveKind::all_reduce, kGather = CollectiveKind::all_gather;
  for (const auto& [local, since, kind, a, p] :
       {std::tuple{8, 5, kReduce, A::ring, P::ll128}, std::tuple{8, 17, kReduce, A::nvls, P::simple},
        std::tuple{1, 23, kGather, A::pat, P::simple}}) {
    EXPECT_FALSE(has(local, since - 1, kind, a, p)) << since;
    EXPECT_TRUE(has(local, since, kind, a, p)) << since;
  }
  EXPECT_TRUE(has(8, 4, kReduce, A::tree, P::ll));
}

TEST(Nccl, ARackOfNvlinkIsOneNode) {
  const Cluster c = cluster(100, 18, 4, 72, 4, 400);
  EXPECT_EQ(nccl_node_gpus(c), 72);
  const NcclModel m = nccl_model(nccl_topology(c, 1, 72));
  EXPECT_EQ(nccl_choose(m, CollectiveKind::all_reduce, 1 << 30).algorithm, NcclAlgorithm::nvls);
  EXPECT_EQ(nccl_topology(c, 4, 72).nics, 72);
}

// Any cluster and any part of its nodes gives finite times, channels that exist and shares within 0..1.
TEST(Nccl, EveryClusterHasATime) {
  struct Part {
    int compute_capability, links, domain;
  };
  const Part parts[] = {{70, 6, 8}, {70, 0, 0}, {80, 12, 8},  {80, 12, 2},   {89, 0, 0},    {90, 18, 8},
                        {90, 8, 8}, {90, 0, 1}, {100, 18, 8}, {100, 18, 72}, {103, 18, 72}, {120, 0, 0}};
  for (const Part& p : parts) {
    for (const double Gbps : {0.0, 1.0, 10.0, 100.0, 200.0, 400.0, 800.0}) {
      for (const int nics : {0, 1, 4, 8, 32}) {
        for (const int nodes : {1, 2, 3, 7, 64, 4096}) {
          for (const int ranks : {1, 2, 3, 4, 5, 8, 36, 72}) {
            const NcclModel m = nccl_model(
                nccl_topology(cluster(p.compute_capability, p.links, 8, p.domain, nics, Gbps), nodes, ranks));
            for (int k = 0; k < kCollectiveKinds; ++k) {
              for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{1} << 20, Bytes{1} << 36}) {
                const NcclChoice c = nccl_choose(m, static_cast<CollectiveKind>(k), bytes);
                const bool alone = m.topology.ranks == 1;
                ASSERT_TRUE(alone ? c.seconds == 0 : std::isfinite(c.seconds) && c.seconds > 0);
                ASSERT_TRUE(alone || (c.channels >= 1 && c.channels <= 64));
                ASSERT_TRUE(c.nic_share >= 0 && c.nic_share <= 1 && c.nvlink_share >= 0 && c.nvlink_share <= 1);
              }
            }
          }
        }
      }
    }
  }
}

// A send costs its latency and then the link, and channels grow with its size up to NCCL's number.
TEST(Nccl, SendsAreAlphaBeta) {
  const NcclModel m = nccl_model(nccl_topology(cluster(90, 18, 8, 8, 8, 400), 2, 8));
  for (const bool same_node : {true, false}) {
    const double link = same_node ? 370.8 : 48;
    double before = 0;
    for (Bytes bytes = 1; bytes <= Bytes{1} << 34; bytes *= 2) {
      const NcclChoice c = nccl_point_to_point(m, same_node, bytes);
      EXPECT_GT(c.seconds, before);
      EXPECT_GE(c.seconds, static_cast<double>(bytes) / (link * 1e9));
      EXPECT_LE(c.channels, same_node ? 32 : 2);
      before = c.seconds;
    }
    EXPECT_NEAR(before, std::pow(2.0, 34) / (link * 1e9), .15 * before);
  }
}

// A token that crosses once per node instead of once per expert takes proportionally less time; on one node nothing
// crosses.
TEST(Nccl, TwoStageAllToAllCrossesNicsOncePerNode) {
  const Bytes bytes = Bytes{256} << 20;
  const NcclModel two = nccl_model(
      {.nodes = 2, .ranks = 16, .nvlink_GBps = 450, .pcie_GBps = 60, .multicast = true, .nics = 8, .nic_GBps = 50});
  const double flat = nccl_all_to_all(two, bytes).seconds;
  const double whole = two_stage_all_to_all(two, bytes, {.to_nodes = 0.5, .to_ranks = 1}).seconds;
  const double once = two_stage_all_to_all(two, bytes, {.to_nodes = 0.25, .to_ranks = 1}).seconds;
  EXPECT_NEAR(whole / flat, 1, 0.02);  // half of the choices are on the other node
  EXPECT_NEAR(once / whole, 0.5, 0.02);
  const NcclModel one = nccl_model({.nodes = 1, .ranks = 8, .nvlink_GBps = 450, .pcie_GBps = 60, .multicast = true});
  EXPECT_EQ(two_stage_all_to_all(one, bytes, {.to_nodes = 0, .to_ranks = 1}).nic_share, 0);
  EXPECT_NEAR(
      two_stage_all_to_all(one, bytes, {.to_nodes = 0, .to_ranks = 0.5}).seconds / nccl_all_to_all(one, bytes).seconds,
      0.5, 0.02);
}

// Two nodes of B300 fill their NICs of 800 Gb/s; with many peers beyond the node no measurement reached that.
TEST(Nccl, AllToAllToManyPeersIsSlow) {
  const auto rate = [](int nodes, double nic) {
    const Bytes bytes = Bytes{8} << 30;
    const NcclModel m = nccl_model({.nodes = nodes,
                                    .ranks = 8 * nodes,
                                    .compute_capability = 100,
                                    .nvlink_GBps = 900,
                                    .pcie_GBps = 120,
                                    .multicast = true,
                                    .nics = 8,
                                    .nic_GBps = nic});
    return static_cast<double>(bytes) * (nodes - 1) / nodes / nccl_all_to_all(m, bytes).seconds / 1e9;
  };
  EXPECT_NEAR(rate(2, 100), 96.5, 6);  // OCI B300: 8 GiB in 44.5 ms
  EXPECT_LT(rate(8, 100), 45.3);
  EXPECT_NEAR(rate(8, 48) / rate(2, 48), 1, 0.02);  // NICs of 400 Gb/s are no faster anyway
}

// GPUs without NVLink reach each other through a CPU, whose rate NCCL counts as 10 GB/s and a fifth less for PCIe
// traffic on Intel, or through a switch of their own at the rate of their links.
TEST(NcclGraph, APcieSwitchSparesTheCpu) {
  Cluster c;
  c.gpu.compute_capability = 89;
  c.gpu.pcie_GBps = 31.5;
  c.gpus_per_node = 8;
  const auto ring_GBps = [&](int gpus_per_switch) {
    c.gpus_per_pcie_switch = gpus_per_switch;
    const NcclGraph ring = nccl_graphs(nccl_topology(c, 1, 4)).ring;
    EXPECT_EQ(ring.intra, gpus_per_switch >= 4 ? NcclPath::pix : NcclPath::sys);
    return ring.intra_GBps * ring.channels;
  };
  EXPECT_LE(ring_GBps(2), 10 / 1.2);
  EXPECT_GE(ring_GBps(4), 20);
}

}  // namespace
}  // namespace orrery
