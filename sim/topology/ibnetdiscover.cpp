// Reads what ibnetdiscover prints of an InfiniBand fabric. A switch begins with `Switch 40 "S-506b..." # "name"`; each
// of its links is a line `[1] "H-0c42..."[1](...) # "host mlx5_0" lid 7 4xNDR`, whose other end is a host (H-) or a
// switch (S-) and whose last word is the number of lanes and their rate.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/base/error.h"
#include "sim/topology/cluster_facts.h"
#include "sim/topology/lines.h"

namespace orrery {
namespace {

struct LaneRate {
  std::string_view name;
  double Gbps;
};
// Rate of data of one lane (InfiniBand Trade Association, "InfiniBand roadmap": 4 lanes of NDR carry 400 Gb/s).
constexpr LaneRate kLaneRates[] = {{"SDR", 2},  {"DDR", 4},  {"QDR", 8},   {"FDR10", 10}, {"FDR", 13.64},
                                   {"EDR", 25}, {"HDR", 50}, {"NDR", 100}, {"XDR", 200}};

// One switch: how often each host and each other switch is at the other end of a link, and the rates of these links.
struct Switch {
  std::map<std::string, std::int64_t> hosts, switches;
  double host_Gbps = 0, switch_Gbps = 0;

  std::int64_t uplinks() const {
    std::int64_t sum = 0;
    for (const auto& [id, links] : switches) sum += links;
    return sum;
  }
};

// Returns the rate that the last word of a line says ("4xNDR"); 0 if it says none.
double rate_of(std::string_view word) {
  const std::size_t x = word.find('x');
  if (x == 0 || x > 2 || word.find_first_not_of("0123456789") != x) return 0;
  const std::string lanes(word.substr(0, x));
  for (const LaneRate& rate : kLaneRates) {
    if (word.substr(x + 1) == rate.name) return std::stod(lanes) * rate.Gbps;
  }
  return 0;
}

std::string_view quoted(std::string_view line, std::size_t from) {
  const std::size_t begin = line.find('"', from);
  if (begin == std::string_view::npos) return {};
  const std::size_t end = line.find('"', begin + 1);
  return end == std::string_view::npos ? std::string_view() : line.substr(begin + 1, end - begin - 1);
}

void add_link(std::string_view line, Switch& s) {
  const std::string_view peer = quoted(line, 0);
  const std::size_t comment = line.find('#');
  if (peer.size() < 3 || comment == std::string_view::npos) return;
  const std::string_view about = quoted(line, comment);
  const double Gbps = rate_of(words_of(line).back());
  if (peer.starts_with("S-")) {
    ++s.switches[std::string(peer)];
    s.switch_Gbps = std::max(s.switch_Gbps, Gbps);
  } else if (peer.starts_with("H-")) {
    // The comment names the host and then the device: "node-17 mlx5_3". Without a name the identifier stands in.
    ++s.hosts[std::string(about.empty() ? peer : about.substr(0, about.find(' ')))];
    s.host_Gbps = std::max(s.host_Gbps, Gbps);
  }
}

std::vector<Switch> leaves_of(std::string_view text) {
  std::vector<Switch> all;
  bool in_switch = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) {
      in_switch = false;
    } else if (line.starts_with("Switch")) {
      all.emplace_back();
      in_switch = true;
    } else if (in_switch && line.front() == '[') {
      add_link(line, all.back());
    }
  }
  std::erase_if(all, [](const Switch& s) { return s.hosts.empty(); });
  return all;
}

}  // namespace

ClusterFacts ibnetdiscover_links(std::string_view text, const std::string& path) {
  const std::vector<Switch> leaves = leaves_of(text);
  if (leaves.empty()) throw Error(fmt::format("{}: has no switch with a host on it", path));
  ClusterFacts facts;
  std::map<std::string, std::int64_t> nics;
  std::int64_t most_on_a_leaf = 0, least_nodes = 1LL << 40, least_uplinks = 1LL << 40;
  double host_Gbps = 0, switch_Gbps = 0;
  for (const Switch& leaf : leaves) {
    const auto nodes = std::ssize(leaf.hosts);
    facts.leaf_nodes = std::max<std::int64_t>(facts.leaf_nodes.value_or(0), nodes);
    least_nodes = std::min<std::int64_t>(least_nodes, nodes);
    least_uplinks = std::min(least_uplinks, leaf.uplinks());
    host_Gbps = std::max(host_Gbps, leaf.host_Gbps);
    switch_Gbps = std::max(switch_Gbps, leaf.switch_Gbps);
    for (const auto& [host, links] : leaf.hosts) {
      nics[host] += links;
      most_on_a_leaf = std::max(most_on_a_leaf, links);
    }
  }
  facts.nodes = std::ssize(nics);
  std::int64_t most_nics = 0;
  for (const auto& [host, links] : nics) most_nics = std::max(most_nics, links);
  facts.nics = most_nics;
  if (most_nics > 1) facts.kind = most_on_a_leaf == 1 ? NetworkKind::rails : NetworkKind::fat_tree;
  if (host_Gbps > 0) facts.nic_Gbps = host_Gbps;
  if (least_uplinks > 0) {
    facts.leaf_uplinks = least_uplinks;
    if (switch_Gbps > 0) facts.uplink_Gbps = switch_Gbps;
  }
  if (least_nodes < *facts.leaf_nodes)
    facts.remarks.push_back(fmt::format("{}: leaves have {} to {} nodes; the largest number is taken", path,
                                        least_nodes, *facts.leaf_nodes));
  return facts;
}

}  // namespace orrery
