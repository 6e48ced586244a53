#include "models/cost/nccl/switches.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "models/base/random.h"
#include "models/spec/sites.h"

namespace orrery {
namespace {

// Latency of each switch beyond the first on a path, that of an HDR InfiniBand switch
// (github.com/stas00/ml-engineering, network/README.md). The figure is used for all fabrics, because no figure was
// found for other fabrics; nor for the nodes of a torus, each of which counts as a switch.
constexpr Picoseconds kSpineHop = 600'000;

double as_one(const Cluster& c, const NicsOfGpu& nics) {
  return static_cast<double>(c.nics) / static_cast<double>(nics.count);
}

// The rate of one NIC: its own, unless it is named or drawn as slow.
double Gbps_of_nic(const Cluster& c, std::int64_t node, std::int64_t nic) {
  double rate = c.nic_Gbps;
  const Network& n = *c.network;
  for (const LinkFault& f : n.faults) {
    if (f.plane < 0 && f.node == node && (f.nic < 0 || f.nic == nic)) rate = std::min(rate, f.Gbps);
  }
  const auto number = static_cast<std::uint64_t>(node * c.nics + nic);
  if (n.fault_share > 0 && uniform(static_cast<std::uint64_t>(n.seed), number) < n.fault_share)
    rate = std::min(rate, n.fault_Gbps);
  return rate * n.efficiency;
}

// The switches of a tree or dragonfly between two GPUs' NICs, or of sites that may have no more to them.
class Tree {
 public:
  Tree(const Cluster& c, const NicsOfGpu& a, const NicsOfGpu& b) : c_(c), n_(*c.network), a_(a), b_(b) {}

  std::vector<SwitchLink> links() const {
    const Place from = switch_of(c_, a_), to = switch_of(c_, b_);
    if (from == to) return {};
    if (site_of(n_, a_.node) != site_of(n_, b_.node)) return of_sites(from, to);
    return has_groups(n_.kind) ? of_groups(from, to) : of_spine(from, to);
  }

 private:
  double nics_of_leaf() const { return static_cast<double>(n_.leaf_nodes) * (has_rails(n_.kind) ? 1 : c_.nics); }
  std::int64_t leaf(const NicsOfGpu& nics) const { return nics.node / n_.leaf_nodes; }

  // The latency of a link above a leaf, with the switch at its end.
  Picoseconds hop() const { return kSpineHop + static_cast<Picoseconds>(std::llround(n_.latency_us * 1e6)); }

  // The share of a leaf's uplinks, some of which may be down or slow.
  double uplinks(const NicsOfGpu& nics) const {
    if (n_.leaf_nodes == 0) return nic_GBps(c_, nics, nics.node);
    const auto planes = static_cast<double>(common_planes(n_, {a_.node, b_.node}, false));
    return working_uplinks(n_, leaf(nics)) * planes * n_.leaf_Gbps * n_.efficiency / 8 * left_on_leaves(n_) /
           nics_of_leaf() * as_one(c_, nics);
  }

  std::vector<SwitchLink> of_sites(const Place& from, const Place& to) const {
    const std::int64_t first = site_of(n_, a_.node), last = site_of(n_, b_.node);
    const auto at = [](std::int64_t site) { return Place{PlaceKind::site, 0, site}; };
    std::vector<SwitchLink> links = {{from, at(first), uplinks(a_), hop()}, {at(last), to, uplinks(b_), hop()}};
    // A link is divided among the nodes of the smaller of its sites.
    const auto nodes_of = [&](std::int64_t site) { return n_.site_nodes > 0 ? n_.site_nodes : n_.site_sizes[site]; };
    const auto add = [&](std::int64_t here, std::int64_t there, double Gbps, double ms) {
      const auto nodes = static_cast<double>(std::min(nodes_of(here), nodes_of(there)));
      links.push_back({at(here), at(there), Gbps * n_.efficiency / 8 / (nodes * c_.nics) * as_one(c_, a_),
                       static_cast<Picoseconds>(ms * 1e9)});
    };
    if (n_.site_nodes > 0) add(first, last, n_.site_Gbps, n_.site_ms);
    if (n_.site_sizes.empty()) return links;
    for (const std::size_t l : way_between_sites(n_, first, last))
      add(n_.site_links[l].from, n_.site_links[l].to, n_.site_links[l].Gbps, n_.site_links[l].ms);
    return links;
  }

  // Links of a dragonfly's leaves to each other, which a byte takes one of, count as two to the group. A group's own
  // spine has the links to other groups; else these are a leaf's, from which another link leads to the last leaf.
  std::vector<SwitchLink> of_groups(const Place& from, const Place& to) const {
    const Place here{PlaceKind::group, 0, leaf(a_) / n_.groups.leaves},
        there{PlaceKind::group, 0, leaf(b_) / n_.groups.leaves};
    const bool own_spine = n_.kind == NetworkKind::dragonfly_plus;
    const Picoseconds up = own_spine ? hop() : hop() / 2;
    std::vector<SwitchLink> links = {{from, here, uplinks(a_), up}, {there, to, uplinks(b_), up}};
    if (here == there) return links;
    const double of_leaf = static_cast<double>(own_spine ? n_.groups.links * n_.groups.spines : n_.groups.links) /
                           static_cast<double>(own_spine ? n_.groups.leaves : 1);
    const double share = of_leaf * n_.groups.Gbps * n_.efficiency / 8 * left_above(n_) / nics_of_leaf();
    links.push_back({here, there, share * as_one(c_, a_), (own_spine ? 1 : 2) * hop()});
    return links;
  }

  std::vector<SwitchLink> of_spine(const Place& from, const Place& to) const {
    const auto part = [&](const NicsOfGpu& nics) { return n_.spine_leaves > 1 ? leaf(nics) / n_.spine_leaves : 0; };
    // Rails that are not joined have a spine each.
    const bool apart = n_.kind == NetworkKind::rail_only;
    const auto spine = [&](const NicsOfGpu& nics) {
      return Place{PlaceKind::spine, 0, apart ? part(nics) * c_.nics + nics.index : part(nics)};
    };
    // A ratio without parts of the spine is that of the leaves' own uplinks.
    const double whole = n_.spine_leaves > 1 ? 1 : n_.spine_ratio;
    std::vector<SwitchLink> links = {{from, spine(a_), uplinks(a_) / whole, hop()},
                                     {spine(b_), to, uplinks(b_) / whole, hop()}};
    if (part(a_) != part(b_)) add_parts(spine(a_), spine(b_), links);
    return links;
  }

  // The links above the lowest parts of the spine, level by level up to the part or the core that holds both.
  void add_parts(Place from, Place to, std::vector<SwitchLink>& links) const {
    const std::int64_t rails = n_.kind == NetworkKind::rail_only ? c_.nics : 1;
    double ratio = n_.spine_ratio;
    for (std::size_t level = 0;; ++level) {
      const bool top = level == n_.upper_spine.size();
      const auto above = [&](const NicsOfGpu& nics) {
        const std::int64_t part = top ? 0 : leaf(nics) / n_.upper_spine[level].leaves;
        return Place{PlaceKind::core, static_cast<std::int64_t>(level), part * rails + (rails > 1 ? nics.index : 0)};
      };
      links.push_back({from, above(a_), uplinks(a_) / ratio, hop()});
      links.push_back({above(b_), to, uplinks(b_) / ratio, hop()});
      if (above(a_) == above(b_)) return;
      from = above(a_);
      to = above(b_);
      ratio *= n_.upper_spine[level].ratio;
    }
  }

  const Cluster& c_;
  const Network& n_;
  const NicsOfGpu &a_, &b_;
};

// The links between two nodes of a torus, along one axis after the other.
std::vector<SwitchLink> torus_links(const Cluster& c, const NicsOfGpu& a, const NicsOfGpu& b) {
  const Torus& torus = c.network->torus;
  int count = 0;
  std::int64_t from = a.node, to = b.node;
  for (auto along = torus.shape.rbegin(); along != torus.shape.rend(); ++along) {
    const std::int64_t apart = std::abs(from % *along - to % *along);
    count += static_cast<int>(torus.wraps ? std::min(apart, *along - apart) : apart);
    from /= *along;
    to /= *along;
  }
  if (count == 0) return {};
  return {{switch_of(c, a), switch_of(c, b), torus.Gbps * c.network->efficiency / 8, (count - 1) * kSpineHop, count}};
}

// All cables of a fabric, at the rate of one link.
std::vector<SwitchLink> cables(const Network& n) {
  std::vector<SwitchLink> links;
  for (const FabricGraph::Cable& cable : n.graph.cables)
    links.push_back(
        {{PlaceKind::leaf, 0, cable.from}, {PlaceKind::leaf, 0, cable.to}, cable.Gbps * n.efficiency / 8, kSpineHop});
  return links;
}

}  // namespace

Place switch_of(const Cluster& c, const NicsOfGpu& nics) {
  const std::int64_t gpus = c.oversubscribed_above_gpus;
  if (!c.network) return {PlaceKind::leaf, 0, gpus > 0 ? nics.node * c.gpus_per_node / gpus : 0};
  const Network& n = *c.network;
  if (n.kind == NetworkKind::torus) return {PlaceKind::grid, 0, nics.node};
  if (n.kind == NetworkKind::graph)
    return {PlaceKind::leaf, 0, n.graph.leaves[nics.node][nics.index * c.nics / nics.count]};
  if (n.leaf_nodes == 0) return {PlaceKind::leaf, 0, site_of(n, nics.node)};
  // Leaves of one rail follow each other at a distance of the number of rails.
  const std::int64_t leaf = nics.node / n.leaf_nodes;
  return {PlaceKind::leaf, 0, has_rails(n.kind) ? leaf * c.nics + nics.index : leaf};
}

double nic_GBps(const Cluster& c, const NicsOfGpu& nics, std::int64_t other) {
  if (!c.network) return c.nic_Gbps / 8 * as_one(c, nics);
  const std::int64_t first = nics.index * c.nics / nics.count, end = (nics.index + 1) * c.nics / nics.count;
  double sum = 0;
  for (std::int64_t nic = first; nic < end; ++nic) sum += Gbps_of_nic(c, nics.node, nic);
  const auto planes = static_cast<double>(common_planes(*c.network, {nics.node, other}, true));
  return sum / static_cast<double>(end - first) / 8 * as_one(c, nics) * planes / static_cast<double>(c.network->planes);
}

std::vector<SwitchLink> links_between(const Cluster& c, const NicsOfGpu& a, const NicsOfGpu& b) {
  const Place from = switch_of(c, a), to = switch_of(c, b);
  if (!c.network) {
    if (from == to) return {};
    const Place spine{PlaceKind::spine, 0, 0};
    const auto share = [&](const NicsOfGpu& nics) { return nic_GBps(c, nics, nics.node) / c.oversubscription; };
    return {{from, spine, share(a), kSpineHop}, {spine, to, share(b), kSpineHop}};
  }
  if (c.network->kind == NetworkKind::torus) return torus_links(c, a, b);
  if (c.network->kind == NetworkKind::graph) return from == to ? std::vector<SwitchLink>{} : cables(*c.network);
  return Tree(c, a, b).links();
}

}  // namespace orrery
