// Reads what ibnetdiscover prints of an InfiniBand fabric. A switch begins with `Switch 40 "S-506b..." # "name"`; each
// of its links is a line `[1] "H-0c42..."[1](...) # "host mlx5_0" lid 7 4xNDR`, whose other end is a host (H-) or a
// switch (S-) and whose last word is the number of lanes and their rate.
#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/base/natural_order.h"
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

// Returns the number after a word of a line ("lid 7"); 0 if there is none.
int number_after(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  int number = 0;
  if (at != std::string_view::npos) std::from_chars(line.data() + at + word.size(), line.data() + line.size(), number);
  return number;
}

// Adds a link to the fabric's switch. host, device: name of the host at the other end, "" for a switch, and of its
// device, "" if it is not said.
void add_port(std::string_view line, std::string_view peer, const std::string& host, const std::string& device,
              double Gbps, FabricLinks::Switch& s) {
  const int number = number_after(line, "[");
  const bool is_switch = host.empty();
  if (number > 0)
    s.ports[number] = {host, is_switch ? std::string(peer) : std::string(),
                       number_after(line.substr(std::min(line.find('#'), line.size())), " lid "), Gbps, device};
}

void add_link(std::string_view line, Switch& s, FabricLinks::Switch& in_fabric) {
  const std::string_view peer = quoted(line, 0);
  const std::size_t comment = line.find('#');
  if (peer.size() < 3 || comment == std::string_view::npos) return;
  const std::string_view about = quoted(line, comment);
  // Switches that reduce (SHARP) list a port of their own as a host.
  if (about.find("Aggregation Node") != std::string_view::npos) return;
  const double Gbps = rate_of(words_of(line).back());
  if (peer.starts_with("S-")) {
    ++s.switches[std::string(peer)];
    add_port(line, peer, "", "", Gbps, in_fabric);
    s.switch_Gbps = std::max(s.switch_Gbps, Gbps);
  } else if (peer.starts_with("H-")) {
    // The comment names the host and then the device: "node-17 mlx5_3". Where it names the product alone ("MT4129
    // ConnectX7 ..."), the identifier stands in.
    const bool named = !about.empty() && !about.starts_with("MT");
    const std::size_t space = std::min(about.find(' '), about.size());
    const std::string host(named ? about.substr(0, space) : peer);
    ++s.hosts[host];
    add_port(line, peer, host, named ? std::string(about.substr(space)) : "", Gbps, in_fabric);
    s.host_Gbps = std::max(s.host_Gbps, Gbps);
  }
}

std::vector<Switch> leaves_of(std::string_view text, FabricLinks& fabric) {
  std::vector<Switch> all;
  bool in_switch = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.empty()) {
      in_switch = false;
    } else if (line.starts_with("Switch")) {
      all.emplace_back();
      const std::size_t comment = line.find('#');
      const std::string_view about = comment == std::string_view::npos ? std::string_view() : line.substr(comment);
      fabric.switches.push_back(
          {std::string(quoted(line, 0)), std::string(quoted(about, 0)), number_after(about, " lid "), {}});
      in_switch = true;
    } else if (in_switch && line.front() == '[') {
      add_link(line, all.back(), fabric.switches.back());
    }
  }
  std::erase_if(all, [](const Switch& s) { return s.hosts.empty(); });
  return all;
}

}  // namespace

namespace {

// Returns the value that occurs most often, the largest of several.
std::int64_t most_common(const std::vector<std::int64_t>& values) {
  std::map<std::int64_t, std::int64_t> count;
  for (const std::int64_t v : values) ++count[v];
  return std::max_element(count.begin(), count.end(), [](const auto& a, const auto& b) { return a.second <= b.second; })
      ->first;
}

// Takes the leaf with most hosts, and of such leaves the one with fewest uplinks, because a transfer waits for it.
void take_leaf(const std::vector<Switch>& leaves, const std::string& path, ClusterFacts& facts) {
  const Switch& taken =
      *std::ranges::max_element(leaves, {}, [](const Switch& s) { return std::pair(s.hosts.size(), -s.uplinks()); });
  facts.leaf_nodes = std::ssize(taken.hosts);
  const auto uneven = std::ranges::count_if(
      leaves, [&](const Switch& s) { return s.hosts.size() != taken.hosts.size() || s.uplinks() != taken.uplinks(); });
  if (uneven > 0)
    facts.remarks.push_back(fmt::format("{}: {} of {} leaves have other numbers of hosts or uplinks than the one taken",
                                        path, uneven, leaves.size()));
  if (taken.uplinks() == 0) {
    facts.remarks.push_back(
        fmt::format("{}: the leaf taken has no link to another switch; uplinks are left out", path));
    return;
  }
  facts.leaf_uplinks = taken.uplinks();
  if (taken.switch_Gbps > 0) facts.uplink_Gbps = taken.switch_Gbps;
}

// Returns the names of the hosts of each leaf, of those with rails the first leaf that a host is on.
std::vector<std::vector<std::string>> hosts_of_leaves(const std::vector<Switch>& leaves) {
  std::set<std::string> seen;
  std::vector<std::vector<std::string>> all;
  for (const Switch& leaf : leaves) {
    std::vector<std::string> names;
    for (const auto& [host, links] : leaf.hosts) {
      if (seen.insert(host).second) names.push_back(host);
    }
    std::ranges::sort(names, in_natural_order);
    if (!names.empty()) all.push_back(std::move(names));
  }
  return all;
}

}  // namespace

ClusterFacts ibnetdiscover_links(std::string_view text, const std::string& path) {
  ClusterFacts facts;
  const std::vector<Switch> leaves = leaves_of(text, facts.fabric);
  if (leaves.empty()) throw Error(fmt::format("{}: has no switch with a host on it", path));
  std::map<std::string, std::int64_t> nics;
  std::vector<std::int64_t> on_leaf, of_host;
  double host_Gbps = 0;
  for (const Switch& leaf : leaves) {
    host_Gbps = std::max(host_Gbps, leaf.host_Gbps);
    for (const auto& [host, links] : leaf.hosts) {
      nics[host] += links;
      on_leaf.push_back(links);
    }
  }
  for (const auto& [host, links] : nics) of_host.push_back(links);
  facts.nodes = std::ssize(nics);
  facts.nics = most_common(of_host);
  // Most hosts decide, because servers of storage and management are cabled otherwise.
  const std::int64_t together = most_common(on_leaf);
  if (*facts.nics > 1) facts.kind = together == 1 ? NetworkKind::rails : NetworkKind::fat_tree;
  if (const auto odd = std::ssize(of_host) - std::ranges::count(of_host, *facts.nics); odd > 0)
    facts.remarks.push_back(
        fmt::format("{}: {} of {} hosts have another number of NICs than {}", path, odd, of_host.size(), *facts.nics));
  if (together > 1 && together < *facts.nics)
    facts.remarks.push_back(
        fmt::format("{}: a host has {} of its {} NICs on a leaf, which is neither rails nor a fat tree", path, together,
                    *facts.nics));
  if (host_Gbps > 0) facts.nic_Gbps = host_Gbps;
  take_leaf(leaves, path, facts);
  facts.names_by_leaf = hosts_of_leaves(leaves);
  return facts;
}

}  // namespace orrery
