#pragma once

#include <fstream>
#include <initializer_list>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/cost/nccl/model.h"

namespace orrery {

// One topology of tests/data/nccl_2.28.9_reference.txt, which NCCL 2.28.9's own graph search and tuner printed for
// synthetic machines: the machine, the graphs found, the tuning table, and the choices by size.
struct NcclReference {
  struct Row {
    CollectiveKind kind;
    NcclAlgorithm algorithm;
    NcclProtocol protocol;
    double latency_us;
    double bandwidth_GBps;
  };
  struct Choice {  // from this size on, up to the next choice of the same kind
    CollectiveKind kind;
    Bytes from;
    NcclAlgorithm algorithm;
    NcclProtocol protocol;
    double time_us;
  };
  struct Time {
    CollectiveKind kind;
    Bytes bytes;
    double time_us;
  };
  std::string title;
  NcclTopology topology;
  NcclGraphs graphs;
  std::vector<Row> rows;
  std::vector<Choice> choices;
  std::vector<Time> times;
};

namespace nccl_reference {

// Data of a machine that the title of a block in the reference file does not contain.
struct Machine {
  std::string_view name;
  int compute_capability;
  double nvlink_GBps;
  double pcie_GBps;
  bool multicast;
  int nics;
  bool shared_pcie_switch;
};

constexpr Machine kMachines[] = {
    {"dgxh100.xml", 90, 370.8, 48, true, 8, false},      {"dgxh100_amd.xml", 90, 370.8, 48, true, 8, false},
    {"dgxa100.xml", 80, 240, 24, false, 8, true},        {"b200.xml", 100, 721.8, 48, true, 8, false},
    {"h800.xml", 90, 164.8, 48, true, 8, false},         {"h100_tp4.xml", 90, 370.8, 48, true, 4, false},
    {"h100_tp2.xml", 90, 370.8, 48, true, 2, false},     {"h100_4nic.xml", 90, 370.8, 48, true, 4, false},
    {"h100_eth100.xml", 90, 370.8, 48, true, 1, false},  {"pcie_l40.xml", 89, 0, 24, false, 1, false},
    {"dgxh100_1of8.xml", 90, 370.8, 48, true, 1, false},
};

template <class T>
T find(std::string_view word, std::initializer_list<std::pair<std::string_view, T>> words) {
  for (const auto& [name, value] : words) {
    if (name == word) return value;
  }
  throw std::runtime_error("nccl reference: unknown word " + std::string(word));
}

inline CollectiveKind kind_of(std::string_view word) {
  return find<CollectiveKind>(word, {{"AllReduce", CollectiveKind::all_reduce},
                                     {"AllGather", CollectiveKind::all_gather},
                                     {"ReduceScatter", CollectiveKind::reduce_scatter},
                                     {"Broadcast", CollectiveKind::broadcast}});
}

inline NcclAlgorithm algorithm_of(std::string_view word) {
  return find<NcclAlgorithm>(word, {{"Tree", NcclAlgorithm::tree},
                                    {"Ring", NcclAlgorithm::ring},
                                    {"NVLS", NcclAlgorithm::nvls},
                                    {"NVLSTree", NcclAlgorithm::nvls_tree},
                                    {"PAT", NcclAlgorithm::pat}});
}

inline NcclProtocol protocol_of(std::string_view word) {
  return find<NcclProtocol>(
      word, {{"LL", NcclProtocol::ll}, {"LL128", NcclProtocol::ll128}, {"Simple", NcclProtocol::simple}});
}

inline NcclPath path_of(std::string_view word) {
  return find<NcclPath>(word, {{"LOC", NcclPath::loc},
                               {"NVL", NcclPath::nvl},
                               {"PIX", NcclPath::pix},
                               {"PXN", NcclPath::pxn},
                               {"SYS", NcclPath::sys}});
}

inline double number_after(const std::string& line, const std::string& key) {
  return std::stod(line.substr(line.find(key) + key.size()));
}

// "# dgxh100.xml nNodes=2 ngpu=8 inter=1 maxBw=48.0 totalBw=370.8 cpuArch=1 vendor=1", vendor 2 being AMD.
inline NcclReference parse_title(const std::string& line) {
  NcclReference r;
  r.title = line.substr(2);
  NcclTopology& t = r.topology;
  const std::string name = r.title.substr(0, r.title.find(' '));
  for (const Machine& m : kMachines) {
    if (m.name != name) continue;
    t = {0,      0, m.compute_capability, false, m.nvlink_GBps, 0, m.pcie_GBps, m.multicast,
         m.nics, 0, m.shared_pcie_switch};
  }
  t.nodes = static_cast<int>(number_after(line, "nNodes="));
  t.ranks = t.nodes * static_cast<int>(number_after(line, "ngpu="));
  t.nic_GBps = number_after(line, "maxBw=");
  t.amd_cpu = number_after(line, "vendor=") == 2;
  return r;
}

// "graph ring  pattern 4 crossNic 0 nChannels 12 bw 30/30 type NVL/PIX same 1 latInter 0"
inline void parse_graph(std::istringstream& words, NcclReference& r) {
  std::string which, skip, type;
  int pattern = 0;
  NcclGraph g;
  char slash = 0;
  words >> which >> skip >> pattern >> skip >> skip >> skip >> g.channels >> skip >> g.intra_GBps >> slash >>
      g.inter_GBps >> skip >> type >> skip >> g.same_channels;
  g.intra = path_of(type.substr(0, 3));
  g.inter = path_of(type.substr(4));
  g.plain_tree = pattern == 3;
  (which == "ring" ? r.graphs.ring : which == "tree" ? r.graphs.tree : r.graphs.nvls) = g;
}

// ">=2048K:NVLS/Simple(32.7us)" or "[1GiB:3973us]"
inline void parse_choice(CollectiveKind kind, const std::string& word, NcclReference& r) {
  const auto colon = word.find(':'), slash = word.find('/'), bracket = word.find('(');
  if (word.starts_with("[")) {
    r.times.push_back({kind, Bytes{1} << 30, std::stod(word.substr(colon + 1))});
    return;
  }
  r.choices.push_back({kind, std::stoll(word.substr(2)) << 10, algorithm_of(word.substr(colon + 1, slash - colon - 1)),
                       protocol_of(word.substr(slash + 1, bracket - slash - 1)), std::stod(word.substr(bracket + 1))});
}

inline void parse_line(const std::string& line, NcclReference& r) {
  std::istringstream words(line);
  std::string first, a, b, c, skip;
  words >> first;
  if (first == "graph") parse_graph(words, r);
  if (first == "collChannels") words >> r.graphs.collective_channels >> skip >> r.graphs.nvls_channels;
  if (first == "tab") {
    NcclReference::Row row{};
    words >> a >> b >> c >> skip >> row.latency_us >> skip >> row.bandwidth_GBps;
    row.kind = kind_of(a);
    row.algorithm = algorithm_of(b);
    row.protocol = protocol_of(c);
    r.rows.push_back(row);
  }
  if (first == "sel") {
    words >> a;
    while (words >> b) parse_choice(kind_of(a.substr(0, a.size() - 1)), b, r);
  }
}

}  // namespace nccl_reference

inline std::vector<NcclReference> nccl_references() {
  using namespace nccl_reference;
  std::ifstream file(ORRERY_SOURCE_DIR "/tests/data/nccl_2.28.9_reference.txt");
  std::vector<NcclReference> all;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# ")) {
      all.push_back(parse_title(line));
    } else if (!line.empty() && !all.empty()) {
      parse_line(line, all.back());
    }
  }
  return all;
}

}  // namespace orrery
