#include <string>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

Network with_sites(const std::string& sites) {
  return *parse_spec("model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 64, network: {sites: " + sites +
                         "}}\nstrategy: {data: 8}\n",
                     "sites.yaml")
              .cluster.network;
}

std::string site_refusal(const std::string& sites) {
  try {
    with_sites(sites);
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}

TEST(Sites, AreAListOfDifferentSizesWithLinks) {
  const Network n = with_sites("[{nodes: 40}, {nodes: 24, to: {0: {Gbps: 12800, ms: 5, buffer_MiB: 64}}}]");
  EXPECT_EQ(n.site_nodes, 0);
  EXPECT_EQ(n.site_sizes, (std::vector<std::int64_t>{40, 24}));
  ASSERT_EQ(n.site_links.size(), 1);
  EXPECT_EQ(n.site_links[0].from, 1);
  EXPECT_EQ(n.site_links[0].to, 0);
  EXPECT_EQ(n.site_links[0].Gbps, 12800);
  EXPECT_EQ(n.site_links[0].ms, 5);
  EXPECT_EQ(n.site_links[0].buffer_MiB, 64);
  EXPECT_EQ(with_sites("{nodes: 32, Gbps: 100, ms: 1}").site_nodes, 32);
}

TEST(Sites, SayWhatIsWrong) {
  const auto refused = [](const char* sites, const char* what) {
    EXPECT_NE(site_refusal(sites).find(what), std::string::npos) << sites << ": " << site_refusal(sites);
  };
  refused("[{nodes: 64}]", "1 sites are not 2 to 8");
  refused("[{nodes: 40}, {nodes: 24}]", "no links join sites 0 and 1; give site 1 to: {0: {Gbps: 12800, ms: 5}}");
  refused("[{nodes: 40}, {nodes: 20, to: {0: {Gbps: 1, ms: 5}}}]", "the sites have 60 nodes, the cluster 64");
  refused("[{nodes: 40}, {nodes: 24, to: {1: {Gbps: 1, ms: 5}}}]", "1 is no other site of 2");
  refused("[{nodes: 40}, {nodes: 24, to: {0: {ms: 5}}}]", "sites.to.0.Gbps: missing");
  refused("[{nodes: 40}, {nodes: 24, to: {0: {Gbps: 0, ms: 5}}}]", "sites.Gbps: 0 is no rate");
  refused("[{nodes: 40}, {nodes: 24, to: {0: {Gbps: 1, ms: 5000}}}]", "sites.ms: 5000");
  refused("[{nodes: 20}, {nodes: 20, to: {0: {Gbps: 1, ms: 5}}}, {nodes: 24, to: {1: {Gbps: 1, ms: -6}}}]",
          "-6 is no time");
  refused("[{nodes: 40, Gbps: 3}, {nodes: 24, to: {0: {Gbps: 1, ms: 5}}}]", "it is of a link to one other");
  refused("[{nodes: 40, to: {1: {Gbps: 1, ms: 5}}}, {nodes: 24, to: {0: {Gbps: 1, ms: 5}}}]", "are joined twice");
  refused("[{nodes: 40}, {nodes: 24, to: 0}]", "links by the numbers of sites are needed");
  refused("{nodes: 40, Gbps: 1, ms: 1, to: {0: {Gbps: 1, ms: 5}}}", "it needs a list of sites");
}

}  // namespace
}  // namespace orrery
