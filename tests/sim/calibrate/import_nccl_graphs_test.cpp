#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/spec/cluster.h"
#include "sim/calibrate/import.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// As NCCL writes it on a node of a communicator of several nodes, or (without net) of one.
std::string graphs_of(const std::string& net) {
  const std::string gpus = "<gpu dev=\"0\"/><gpu dev=\"1\"/><gpu dev=\"2\"/><gpu dev=\"3\"/>";
  const std::string of_ring =
      "<graph id=\"0\" pattern=\"4\" crossnic=\"0\" nchannels=\"6\" speedintra=\"30\" "
      "speedinter=\"20\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PXB\" "
      "samechannels=\"1\">";
  const std::string of_tree =
      "<graph id=\"1\" pattern=\"1\" crossnic=\"0\" nchannels=\"3\" speedintra=\"60\" "
      "speedinter=\"20\" latencyinter=\"0\" typeintra=\"NVL\" typeinter=\"PXB\" "
      "samechannels=\"0\">";
  return "<graphs version=\"1\">\n" + of_ring + "<channel>" + net + gpus + net + "</channel></graph>\n" + of_tree +
         "<channel>" + net + gpus + net +
         "</channel></graph>\n<graph id=\"2\" pattern=\"6\" crossnic=\"0\" nchannels=\"0\" "
         "speedintra=\"0\" speedinter=\"0\" latencyinter=\"0\" typeintra=\"LOC\" typeinter=\"LOC\" "
         "samechannels=\"0\"/>\n</graphs>\n";
}

TEST(ImportNcclGraphs, TakesRingAndTree) {
  const Imported file = import_text("graphs.xml", graphs_of("<net dev=\"0\"/>"));
  ASSERT_EQ(file.nccl.size(), 1U);
  const LoggedNccl& l = file.nccl[0];
  EXPECT_EQ(l.nodes, LoggedNccl::kSeveralNodes);
  EXPECT_EQ(l.ranks, 4);
  ASSERT_TRUE(l.ring && l.tree && !l.nvls);
  EXPECT_EQ(l.ring->channels, 6);
  EXPECT_EQ(l.ring->inter_GBps, 20);
  EXPECT_EQ(l.ring->inter, NcclPath::pxb);
  EXPECT_TRUE(l.ring->same_channels && !l.tree->same_channels && !l.tree->plain_tree);
  EXPECT_EQ(import_text("graphs.xml", graphs_of("")).nccl[0].nodes, 1);
}

// Graphs replace those of the port wherever a communicator has as many ranks on each of its nodes, and the channels and
// the table follow from them.
TEST(ImportNcclGraphs, ReplaceThosePredicted) {
  const std::vector<LoggedNccl> logged = import_text("graphs.xml", graphs_of("<net dev=\"0\"/>")).nccl;
  const Cluster cluster = find_cluster("dgx-h100", 8);
  const auto model_of = [&](const std::vector<int>& members, const std::vector<LoggedNccl>& known) {
    return nccl_model(cluster, members, {.gpus = 64}, known);
  };
  const NcclModel with = model_of({4, 4, 4}, logged), without = model_of({4, 4, 4}, {});
  EXPECT_EQ(with.graphs.ring.channels, 6);
  EXPECT_NE(without.graphs.ring.channels, 6);
  EXPECT_EQ(with.graphs.collective_channels, 12);
  const auto bandwidth = [](const NcclModel& m) {
    return m.row(CollectiveKind::all_gather, NcclAlgorithm::ring, NcclProtocol::simple).bandwidth_GBps;
  };
  EXPECT_NE(bandwidth(with), bandwidth(without));
  for (const std::vector<int>& others : {std::vector<int>{8, 8}, {4}, {4, 2}})
    EXPECT_EQ(bandwidth(model_of(others, logged)), bandwidth(model_of(others, {})));
}

TEST(ImportNcclGraphs, OutliveTheProfile) {
  Profile p;
  p.rest_built_in = true;
  p.nccl = import_text("graphs.xml", graphs_of("<net dev=\"0\"/>")).nccl;
  const test::TemporaryFolder folder;
  std::ofstream(folder.path("p.json")) << to_json(p);
  EXPECT_EQ(to_json(load_profile(folder.path("p.json"))), to_json(p));
}

TEST(ImportNcclGraphs, RefuseWhatNcclDoesNotWrite) {
  const auto refusal = [](const std::string& text) {
    try {
      import_text("g.xml", text);
      return std::string();
    } catch (const Error& e) {
      EXPECT_EQ(e.exit_code, 2);
      return std::string(e.what());
    }
  };
  EXPECT_EQ(refusal("<system/>"),
            "g.xml: has no <graphs>; give NCCL_GRAPH_DUMP_FILE's file (a topology is for import-topology)");
  EXPECT_EQ(refusal("<graphs/>"), "g.xml: has no <graph> of a ring with channels and paths that are known");
  EXPECT_EQ(refusal("<graphs><graph pattern=\"4\"/></graphs>").substr(0, 31), "g.xml: <graph> has no nchannels");
  std::string nan = graphs_of("");
  nan.replace(nan.find("speedintra=\"30\""), 15, "speedintra=\"nan\"");
  EXPECT_EQ(refusal(nan).substr(0, 32), "g.xml: <graph> has no speedintra");
}

}  // namespace
}  // namespace orrery
