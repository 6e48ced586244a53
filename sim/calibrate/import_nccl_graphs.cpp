// Reads the graphs that NCCL's topology search chose for a communicator, as NCCL_GRAPH_DUMP_FILE writes them: <graphs>
// of <graph id pattern nchannels speedintra speedinter typeintra typeinter samechannels>, each with a <channel> of
// <net> and <gpu> elements (NCCL 2.28.9, src/graph/search.cc, ncclTopoGetXmlFromGraph).
#include <cmath>

#include <fmt/format.h>
#include <boost/property_tree/ptree.hpp>

#include "models/base/error.h"
#include "models/base/sensible.h"
#include "sim/calibrate/import.h"
#include "sim/topology/xml.h"

namespace orrery {
namespace {

using Tree = boost::property_tree::ptree;

class GraphDump {
 public:
  explicit GraphDump(const std::string& path) : path_(path) {}

  LoggedNccl read(const Tree& graphs) {
    LoggedNccl logged;
    for (const auto& [name, graph] : graphs) {
      if (name == "graph") add(graph, logged);
    }
    if (!logged.ring) fail("has no <graph> of a ring with channels and paths that are known");
    return logged;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw Error(fmt::format("{}: {}", path_, what)); }

  std::int64_t whole(const Tree& graph, const std::string& key, std::int64_t most) const {
    const auto value = graph.get_optional<std::int64_t>("<xmlattr>." + key);
    if (!value || *value < 0 || *value > most) fail(fmt::format("<graph> has no {} from 0 to {}", key, most));
    return *value;
  }

  double rate(const Tree& graph, const std::string& key) const {
    const auto value = graph.get_optional<double>("<xmlattr>." + key);
    if (!value || !(*value >= 0) || *value > sensible::kMostGBps)
      fail(fmt::format("<graph> has no {} from 0 to {} GB/s", key, sensible::kMostGBps));
    return *value;
  }

  // A pattern above 5 is CollNet's, which is not imported; 1 to 3 are trees, of which 3 is the plain one; 4 is the
  // ring; 5 is NVLS (src/include/graph.h). A path whose name the model does not know leaves the graph out.
  void add(const Tree& graph, LoggedNccl& logged) const {
    const std::int64_t pattern = whole(graph, "pattern", 100),
                       channels = whole(graph, "nchannels", sensible::kMostChannels);
    const double intra_GBps = rate(graph, "speedintra"), inter_GBps = rate(graph, "speedinter");
    const auto intra = find_path(graph.get<std::string>("<xmlattr>.typeintra", "")),
               inter = find_path(graph.get<std::string>("<xmlattr>.typeinter", ""));
    if (pattern < 1 || pattern > 5 || channels == 0 || !intra || !inter) return;
    auto& found = pattern == 4 ? logged.ring : pattern == 5 ? logged.nvls : logged.tree;
    found = NcclGraph{static_cast<int>(channels),          intra_GBps, inter_GBps, *intra, *inter, pattern == 3,
                      whole(graph, "samechannels", 1) == 1};
    if (pattern == 4) note_size(graph, logged);
  }

  // The first channel of the ring has every GPU of a node, between two NICs if there are other nodes.
  void note_size(const Tree& ring, LoggedNccl& logged) const {
    const auto channel = ring.get_child_optional("channel");
    const auto gpus = channel ? static_cast<std::int64_t>(channel->count("gpu")) : 0;
    if (gpus < 1 || gpus > sensible::kMostMembers) fail("the ring's <graph> has no <channel> of <gpu>");
    logged.ranks = gpus;
    logged.nodes = channel->count("net") > 0 ? LoggedNccl::kSeveralNodes : 1;
  }

  const std::string& path_;
};

}  // namespace

Imported import_nccl_graphs(const std::string& path, const std::string& text) {
  const Tree tree = read_nccl_xml(text, path);
  const auto graphs = tree.get_child_optional("graphs");
  if (!graphs)
    throw Error(path + ": has no <graphs>; give NCCL_GRAPH_DUMP_FILE's file (a topology is for import-topology)");
  Imported result;
  result.nccl.push_back(GraphDump(path).read(*graphs));
  return result;
}

}  // namespace orrery
