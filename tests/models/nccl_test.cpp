#include "models/nccl.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "tests/models/nccl_reference.h"

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

// The sizes of the file are powers of two of at least 256 B, which it prints as 0K.
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

}  // namespace
}  // namespace orrery
