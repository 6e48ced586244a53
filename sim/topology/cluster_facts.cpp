#include "sim/topology/cluster_facts.h"

#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/base/error.h"
#include "models/base/host_list.h"
#include "models/base/input_file.h"
#include "models/base/names.h"
#include "sim/topology/lines.h"

namespace orrery {
namespace {

ClusterFacts facts_of_text(const std::string& text, const std::string& path) {
  const auto has = [&](std::string_view word) { return text.find(word) != std::string::npos; };
  // whether a line begins with a word, in either case
  const auto begins = [&](std::string_view word) {
    std::string_view rest = text;
    while (!rest.empty()) {
      std::string line(take_line(rest).substr(0, word.size()));
      std::ranges::transform(line, line.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      if (line == word) return true;
    }
    return false;
  };
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const char begin = first == std::string::npos ? '\0' : text[first];
  if (begin == '<') return nccl_topology_xml(text, path);
  if (begin == '{') return lldp_neighbours(text, path);
  if (begins("switchname=") || begins("blockname=")) return slurm_topology(text, path);
  if (begins("unicast lids")) return forwarding_tables(text, path);
  if (begins("switch\t") || begins("switch ")) return ibnetdiscover_links(text, path);
  if (has("GPU0")) return nvidia_smi_topology(text, path);
  throw Error(
      fmt::format("{}: is none of these: nvidia-smi topo -m, NCCL's topology or graph XML, ibnetdiscover, "
                  "dump_lfts.sh, Slurm's topology.conf, lldpctl -f json",
                  path));
}

template <class T>
void take(std::optional<T>& fact, const std::optional<T>& other) {
  if (!fact) fact = other;
}

void add_line(std::string& text, std::string_view key, const std::optional<std::int64_t>& value) {
  if (value) text += fmt::format("  {}: {}\n", key, *value);
}

// Nodes that follow each other and are cabled alike are one entry.
std::string graph_text(const ClusterFacts& f) {
  const FabricGraph& g = *f.graph;
  std::string text =
      fmt::format("  network:\n    kind: graph\n    graph:\n      switches: {}\n      cables:\n", g.switches);
  for (const FabricGraph::Cable& c : g.cables)
    text += fmt::format("        - [{}, {}, {}, {}]\n", c.from, c.to, c.count, c.Gbps);
  text += "      nodes:\n";
  for (std::size_t i = 0; i < g.leaves.size();) {
    std::size_t next = i;
    while (next < g.leaves.size() && g.leaves[next] == g.leaves[i]) ++next;
    text += fmt::format("        - {{nodes: {}, switches: [{}]}}\n", next - i, fmt::join(g.leaves[i], ", "));
    i = next;
  }
  if (!f.places.empty()) text += fmt::format("    node_names: \"{}\"\n", host_list(f.places));
  return text;
}

// Uplinks are relative to the NICs below the leaf, so that the map needs a number of nodes.
std::string network_text(const ClusterFacts& f) {
  if (f.graph) return graph_text(f);
  if (!f.leaf_nodes) return "";
  std::string text = "  network:\n";
  if (f.kind) text += fmt::format("    kind: {}\n", name_of(*f.kind));
  text += fmt::format("    leaf: {{nodes: {}", *f.leaf_nodes);
  if (f.leaf_uplinks) text += fmt::format(", uplinks: {}", *f.leaf_uplinks);
  if (f.uplink_Gbps) text += fmt::format(", Gbps: {}", *f.uplink_Gbps);
  text += "}\n";
  if (f.spine_leaves) text += fmt::format("    spine: {{leaves: {}}}\n", *f.spine_leaves);
  if (f.routing) text += fmt::format("    routing: {{kind: {}}}\n", name_of(*f.routing));
  if (!f.places.empty()) text += fmt::format("    node_names: \"{}\"\n", host_list(f.places));
  return text;
}

}  // namespace

void complete(ClusterFacts& facts, const ClusterFacts& more) {
  take(facts.nodes, more.nodes);
  take(facts.gpus_per_node, more.gpus_per_node);
  take(facts.nics, more.nics);
  take(facts.nvlink_domain, more.nvlink_domain);
  take(facts.gpus_per_pcie_switch, more.gpus_per_pcie_switch);
  take(facts.nic_Gbps, more.nic_Gbps);
  take(facts.kind, more.kind);
  take(facts.leaf_nodes, more.leaf_nodes);
  take(facts.leaf_uplinks, more.leaf_uplinks);
  take(facts.uplink_Gbps, more.uplink_Gbps);
  take(facts.spine_leaves, more.spine_leaves);
  take(facts.routing, more.routing);
  take(facts.even_uplinks, more.even_uplinks);
  for (const auto& [leaf, hosts] : more.hosts_on_leaf) facts.hosts_on_leaf[leaf] += hosts;
  if (facts.names_by_leaf.empty()) facts.names_by_leaf = more.names_by_leaf;
  if (facts.fabric.switches.empty()) facts.fabric.switches = more.fabric.switches;
  facts.fabric.tables.insert(more.fabric.tables.begin(), more.fabric.tables.end());
  facts.remarks.insert(facts.remarks.end(), more.remarks.begin(), more.remarks.end());
}

void count_uneven_uplinks(ClusterFacts& facts) {
  if (facts.leaf_uplinks && facts.even_uplinks) facts.leaf_uplinks = std::min(*facts.leaf_uplinks, *facts.even_uplinks);
}

// Returns whether a name can stand in a list of hosts between quotes.
static bool fits_in_list(const std::string& name) {
  return !name.empty() && name != "-" && is_printable(name) && name.find_first_of("[], \t\"\\") == std::string::npos;
}

void route_fabric(ClusterFacts& facts) {
  std::vector<std::string> names;
  for (const auto& leaf : facts.names_by_leaf) names.insert(names.end(), leaf.begin(), leaf.end());
  const auto routes = fabric_routes(facts.fabric, names, facts.nics.value_or(0));
  if (!routes) return;
  if (routes->routes > 0)
    facts.remarks.push_back(fmt::format(
        "forwarding tables: {} of {} routes are shortest; the fullest link carries {:.3g} times what it would if all "
        "shortest ways were used evenly",
        routes->routes - routes->longer, routes->routes, routes->table_load));
  if (routes->regular) return;
  facts.remarks.emplace_back(
      "the fabric is kept as a graph, since its leaves are not alike, or links beyond them are fuller than their "
      "uplinks");
  facts.graph = routes->graph;
  facts.nodes = std::ssize(routes->nodes);
  if (std::ranges::all_of(routes->nodes, fits_in_list)) facts.places = routes->nodes;
}

void number_nodes(ClusterFacts& facts) {
  if (!facts.leaf_nodes || facts.names_by_leaf.empty()) return;
  std::set<std::string> seen;
  std::vector<std::string> places;
  std::int64_t names = 0;
  for (const std::vector<std::string>& leaf : facts.names_by_leaf) {
    const auto wrong = std::ranges::find_if_not(
        leaf, [&](const std::string& name) { return fits_in_list(name) && seen.insert(name).second; });
    if (wrong != leaf.end() || std::ssize(leaf) > *facts.leaf_nodes) {
      facts.remarks.push_back(wrong != leaf.end()
                                  ? fmt::format("names of nodes are left out: {} is there twice, or is no name", *wrong)
                                  : fmt::format("names of nodes are left out: a leaf has {}, not up to {}", leaf.size(),
                                                *facts.leaf_nodes));
      return;
    }
    // Numbers of the next leaf begin at a multiple of leaf_nodes.
    while (std::ssize(places) % *facts.leaf_nodes != 0) places.emplace_back("-");
    places.insert(places.end(), leaf.begin(), leaf.end());
    names += std::ssize(leaf);
  }
  facts.places = std::move(places);
  if (std::ssize(facts.places) == names) return;
  facts.remarks.push_back(fmt::format("nodes are numbered with {} free places, named -, since leaves are not alike",
                                      std::ssize(facts.places) - names));
  facts.nodes = std::ssize(facts.places);
}

// The lines below `cluster:`; "" if the facts say nothing about a cluster.
static std::string cluster_text(const ClusterFacts& f) {
  std::string text;
  add_line(text, "nodes", f.nodes);
  add_line(text, "gpus_per_node", f.gpus_per_node);
  add_line(text, "nics", f.nics);
  if (f.nic_Gbps) text += fmt::format("  nic_Gbps: {}\n", *f.nic_Gbps);
  add_line(text, "nvlink_domain", f.nvlink_domain);
  if (f.gpus_per_pcie_switch) text += fmt::format("  pcie: {{gpus_per_switch: {}}}\n", *f.gpus_per_pcie_switch);
  return text + network_text(f);
}

ClusterFacts read_cluster_facts(const std::vector<std::string>& files) {
  ClusterFacts facts;
  for (const std::string& path : files) complete(facts, facts_of_text(read_input(path, kMostMeasurements), path));
  std::int64_t most = 0;
  for (const auto& [leaf, hosts] : facts.hosts_on_leaf) most = std::max(most, hosts);
  // A single host does not tell how many others are on its leaves.
  if (!facts.leaf_nodes && most > 1) facts.leaf_nodes = most;
  count_uneven_uplinks(facts);
  route_fabric(facts);
  if (!facts.graph) number_nodes(facts);
  if (cluster_text(facts).empty())
    throw Error(
        fmt::format("{}: nothing about a cluster's nodes; forwarding tables alone name no hosts and links (give the "
                    "output of ibnetdiscover too), and NCCL's graphs no nodes (give them to calibrate --import)",
                    fmt::join(files, ", ")));
  return facts;
}

std::string facts_text(const ClusterFacts& f) {
  std::string text;
  for (const std::string& remark : f.remarks) text += fmt::format("# {}\n", printable(remark));
  return text + "cluster:\n" + cluster_text(f);
}

}  // namespace orrery
