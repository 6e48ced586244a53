#include "models/spec/network.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "models/base/names.h"

namespace orrery {
namespace {

constexpr Named<NetworkKind> kNetworkKinds[] = {{"fat-tree", NetworkKind::fat_tree},
                                                {"rails", NetworkKind::rails},
                                                {"rail-only", NetworkKind::rail_only},
                                                {"dragonfly", NetworkKind::dragonfly},
                                                {"dragonfly+", NetworkKind::dragonfly_plus},
                                                {"torus", NetworkKind::torus},
                                                {"graph", NetworkKind::graph}};
constexpr Named<Routing> kRoutings[] = {{"adaptive", Routing::adaptive},
                                        {"ecmp", Routing::ecmp},
                                        {"d-mod-k", Routing::d_mod_k},
                                        {"pinned", Routing::pinned}};
constexpr Named<LoadedLinks> kLoadedLinks[] = {
    {"everywhere", LoadedLinks::everywhere}, {"leaf", LoadedLinks::leaf}, {"spine", LoadedLinks::spine}};

constexpr Named<Placement> kPlacements[] = {
    {"contiguous", Placement::contiguous}, {"scattered", Placement::scattered}, {"random", Placement::random}};

}  // namespace

double left_on_leaves(const Network& n) { return n.loaded == LoadedLinks::spine ? 1 : 1 - n.load; }
double left_above(const Network& n) { return n.loaded == LoadedLinks::leaf ? 1 : 1 - n.load; }

std::vector<double> uplink_rates(const Network& n, std::int64_t leaf) {
  std::int64_t links = n.leaf_uplinks;
  std::vector<double> rates(static_cast<std::size_t>(n.leaf_uplinks), 1);
  for (const LinkFault& f : n.faults) {
    if (f.plane >= 0 || f.leaf != leaf) continue;
    if (f.link < 0)
      links = std::min(links, f.uplinks);
    else
      rates[static_cast<std::size_t>(f.link)] = std::min(rates[static_cast<std::size_t>(f.link)], f.Gbps / n.leaf_Gbps);
  }
  std::erase(rates, 0);
  while (std::ssize(rates) > links)
    // The last one of those with the highest rate.
    rates.erase(std::prev(std::max_element(rates.rbegin(), rates.rend()).base()));
  return rates;
}

double working_uplinks(const Network& n, std::int64_t leaf) {
  const std::vector<double> rates = uplink_rates(n, leaf);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

std::string name_of(const LinkFault& f) {
  std::string part;
  if (f.nic >= 0) part = fmt::format("NIC {}", f.nic);
  if (f.link >= 0) part = fmt::format("uplink {}", f.link);
  if (f.plane >= 0) part = fmt::format("plane {}", f.plane);
  if (f.node < 0 && f.leaf < 0) return part;
  const std::string whole = f.node >= 0 ? fmt::format("node {}", f.node) : fmt::format("leaf {}", f.leaf);
  return part.empty() ? whole : part + " of " + whole;
}

double left_beside(double Gbps, double other) { return std::max(Gbps - other, Gbps / 2); }

// A bit for each plane that is down for a node, by its leaf or also by its own ports.
static std::uint64_t planes_down(const Network& n, std::int64_t node, bool ports) {
  std::uint64_t down = 0;
  for (const LinkFault& f : n.faults) {
    const bool all = f.node < 0 && f.leaf < 0;
    const bool at_leaf = f.leaf >= 0 && n.leaf_nodes > 0 && node / n.leaf_nodes == f.leaf;
    if (f.plane >= 0 && (all || at_leaf || (ports && f.node == node))) down |= std::uint64_t{1} << f.plane;
  }
  return down;
}

std::int64_t common_planes(const Network& n, const std::set<std::int64_t>& nodes, bool ports) {
  std::set<std::uint64_t> down;
  for (const std::int64_t node : nodes) down.insert(planes_down(n, node, ports));
  std::int64_t least = n.planes;
  for (const std::uint64_t a : down) {
    for (const std::uint64_t b : down) least = std::min<std::int64_t>(least, n.planes - std::popcount(a | b));
  }
  return least;
}

double held_by_flap(double down_s) { return std::ceil(down_s / kResend_s) * kResend_s; }

NetworkKind find_network_kind(std::string_view name) { return find_named(kNetworkKinds, "kind of network", name); }
Routing find_routing(std::string_view name) { return find_named(kRoutings, "routing", name); }
Placement find_placement(std::string_view name) { return find_named(kPlacements, "placement", name); }
LoadedLinks find_loaded_links(std::string_view name) { return find_named(kLoadedLinks, "kind of links", name); }
std::string_view name_of(LoadedLinks l) { return name_in(kLoadedLinks, l); }
std::string_view name_of(Placement p) { return name_in(kPlacements, p); }
std::string_view name_of(NetworkKind k) { return name_in(kNetworkKinds, k); }
std::string_view name_of(Routing r) { return name_in(kRoutings, r); }

}  // namespace orrery
