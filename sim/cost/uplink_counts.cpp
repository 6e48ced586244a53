#include "sim/cost/uplink_counts.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "sim/cost/torus_routes.h"

namespace orrery {
namespace {

constexpr auto kPipeline = static_cast<std::size_t>(Dimension::pipeline);

// The most pairs of a group of `size` ranks that one node has with ranks on other nodes. members: those on each node.
double pairs_of_busiest_node(const std::map<std::int64_t, double>& members, double size) {
  double most = 0;
  for (const auto& [node, count] : members) most = std::max(most, count * (size - count));
  return most;
}

class TrafficCounter {
 public:
  TrafficCounter(const Plan& plan, const Cluster& cluster, const JobSeats& seats)
      : plan_(plan),
        cluster_(cluster),
        seats_(seats),
        rails_(cluster.network && has_rails(cluster.network->kind) ? std::max(1, cluster.nics) : 1) {}

  void count_edges(UplinkLevel& level, std::size_t dimension) const;
  void count_pairs(UplinkLevel& level, std::size_t dimension) const;
  void count_link_pairs(UplinkLevel& level, std::size_t dimension) const;
  void count_domains(UplinkLevel& level) const;

 private:
  void visit_links_of(const UplinkLevel& level, std::int64_t from, std::int64_t to,
                      const std::function<void(std::int64_t, double)>& visit) const;
  // the node of the cluster that a rank is on
  std::int64_t node_of(std::int64_t rank) const { return seats_.domain_of(cluster_.gpus_per_node, rank); }
  // the node, or the site where the level is a link between two
  std::int64_t place_of(const UplinkLevel& level, std::int64_t rank) const {
    return level.site != nullptr ? level.site->site_of(node_of(rank)) : node_of(rank);
  }

  const Plan& plan_;
  const Cluster& cluster_;
  const JobSeats& seats_;
  double rails_;  // leaves that a node's NICs are cabled to, each with the same part of its bytes
};

// Calls visit(link, weight) for every link of a level between two nodes of the cluster; the weight is over the rate of
// a link that carries all that a node can send. Of sites, from and to are their numbers.
void TrafficCounter::visit_links_of(const UplinkLevel& level, std::int64_t from, std::int64_t to,
                                    const std::function<void(std::int64_t, double)>& visit) const {
  if (level.site != nullptr) {
    if (const int way = level.site->way(from, to); way != 0) visit(way - 1, 1);
    return;
  }
  if (level.pinned != nullptr)
    return level.pinned->visit_links(from, to, [&](std::int64_t link, double share) {
      visit(link, share / rails_ * level.capacity / (level.uplink * level.pinned->share_of_rate(link)));
    });
  if (level.torus != nullptr) return visit_links(*level.torus, from, to, [&](std::int64_t link) { visit(link, 1); });
  const auto &out = cluster_.network->graph.leaves[from], &in = cluster_.network->graph.leaves[to];
  for (std::size_t nic = 0; nic < out.size(); ++nic) {
    level.graph->visit_links(out[nic], in[nic], [&](std::int64_t link, double share) {
      const double rate = level.graph->rate_of(link) * cluster_.network->efficiency * (1 - cluster_.network->load);
      visit(link, share / static_cast<double>(out.size()) * level.capacity / rate);
    });
  }
}

// A pipeline sends activations forward and gradients back. The busiest domain of either direction counts; where both
// leave one domain at the same moment, they meet in the engine (Contention).
void TrafficCounter::count_edges(UplinkLevel& level, std::size_t dimension) const {
  // Edges by the domain that they leave, or by the torus's link; and by pairs of domains.
  struct Leaving {
    std::map<std::int64_t, double> by_link;
    std::map<std::pair<std::int64_t, std::int64_t>, double> one_way;
  };
  Leaving forward, back;
  double& most = level.edges[dimension];
  double boundaries = 0;
  const auto leave = [&](std::int64_t from, std::int64_t to, Leaving& leaving) {
    const std::int64_t domain = seats_.domain_of(level.gpus, from), other = seats_.domain_of(level.gpus, to);
    if (domain == other || seats_.node_of(from) == seats_.node_of(to)) return;
    if (has_links(level) && level.graph == nullptr && !crosses(level, seats_, from, to)) return;
    const auto count = [&](std::int64_t link, double weight) {
      most = std::max(most, leaving.by_link[link] += weight);
    };
    if (has_links(level))
      visit_links_of(level, place_of(level, from), place_of(level, to), count);
    else
      count(domain, 1);
    if (level.one_way > 0)
      level.one_way_edges[dimension] = std::max(level.one_way_edges[dimension], ++leaving.one_way[{domain, other}]);
    ++boundaries;
  };
  for (const auto& group : plan_.dimensions[dimension].groups) {
    boundaries = 0;
    for (std::size_t i = 0; i + 1 < group.size(); ++i) {
      leave(group[i], group[i + 1], forward);
      if (dimension == kPipeline) leave(group[i + 1], group[i], back);
    }
    if (dimension != kPipeline && group.size() > 1) leave(group.back(), group.front(), forward);
    level.boundaries[dimension] = std::max(level.boundaries[dimension], boundaries);
  }
}

void TrafficCounter::count_domains(UplinkLevel& level) const {
  std::set<std::int64_t> domains;
  for (std::int64_t rank = 0; rank < plan_.workers(); ++rank) domains.insert(seats_.domain_of(level.gpus, rank));
  level.domains = std::max<std::int64_t>(1, std::ssize(domains));
}

// Finds for each domain how many pairs of ranks cross its boundary: a group with n members, k of them inside the
// domain, has k (n - k) such pairs. The pairs that cross the boundary of a node are counted in the same way.
void TrafficCounter::count_pairs(UplinkLevel& level, std::size_t dimension) const {
  struct Sent {
    double away = 0, from_nodes = 0;
  };
  std::map<std::int64_t, Sent> sent;
  std::map<std::pair<std::int64_t, std::int64_t>, double> one_way;  // pairs between two groups of a dragonfly
  for (const auto& group : plan_.dimensions[dimension].groups) {
    std::map<std::int64_t, double> in_domain, in_node;
    for (const std::int32_t rank : group) {
      ++in_domain[seats_.domain_of(level.gpus, rank)];
      ++in_node[seats_.node_of(rank)];
    }
    const auto size = static_cast<double>(group.size());
    const double node = pairs_of_busiest_node(in_node, size);
    if (node == 0) continue;
    level.node_pairs[dimension] = std::max(level.node_pairs[dimension], node);
    for (const auto& [at, members] : in_node)
      level.sent_by[dimension] = std::max(level.sent_by[dimension], size - members);
    level.nodes_by[dimension] = std::max(level.nodes_by[dimension], static_cast<double>(in_node.size()) - 1);
    for (const auto& [domain, members] : in_domain) {
      if (members < size) sent[domain].away += members * (size - members) / node;
      if (level.one_way == 0) continue;
      for (const auto& [other, others] : in_domain)
        one_way[{domain, other}] += other == domain ? 0 : members * others / node;
    }
    for (const std::int32_t rank : group) {
      const double members = in_node[seats_.node_of(rank)];
      sent[seats_.domain_of(level.gpus, rank)].from_nodes += (size - members) / node;
    }
  }
  for (const auto& [domain, s] : sent) {
    if (s.away <= level.pairs[dimension]) continue;
    level.pairs[dimension] = s.away;
    level.from_nodes[dimension] = s.from_nodes;
  }
  for (const auto& [way, pairs] : one_way)
    level.one_way_pairs[dimension] = std::max(level.one_way_pairs[dimension], pairs);
}

void TrafficCounter::count_link_pairs(UplinkLevel& level, std::size_t dimension) const {
  const std::int64_t links = level.site != nullptr     ? 2
                             : level.pinned != nullptr ? level.pinned->link_count()
                             : level.torus != nullptr  ? link_count(*level.torus)
                                                       : level.graph->link_count();
  std::vector<double> on_link(static_cast<std::size_t>(links));
  for (const auto& group : plan_.dimensions[dimension].groups) {
    // Members at each node, or on each leaf of which all senders are alike, and in each NVLink domain.
    std::map<std::int64_t, double> senders, at, in_domain;
    for (const std::int32_t rank : group) {
      const std::int64_t place = place_of(level, rank);
      ++senders[level.pinned != nullptr ? level.pinned->first_of_leaf(place) : place];
      ++at[place];
      ++in_domain[seats_.node_of(rank)];
    }
    const auto size = static_cast<double>(group.size());
    const double node = pairs_of_busiest_node(in_domain, size);
    if (node == 0) continue;
    level.node_pairs[dimension] = std::max(level.node_pairs[dimension], node);
    for (const auto& [from, a] : senders) {
      for (const auto& [to, b] : at)
        visit_links_of(level, from, to, [&, pairs = a * b / node](std::int64_t link, double weight) {
          on_link[link] += pairs * weight;
        });
    }
  }
  for (const double pairs : on_link) level.pairs[dimension] = std::max(level.pairs[dimension], pairs);
}

}  // namespace

void count_traffic(const Plan& plan, const Cluster& cluster, const JobSeats& seats, std::vector<UplinkLevel>& levels) {
  std::array<bool, kDimensions> to_all{};
  for (const Op& op : plan.ops) {
    const auto* c = std::get_if<Collective>(&op.work);
    if (c != nullptr && c->kind == CollectiveKind::all_to_all) to_all[static_cast<std::size_t>(c->group)] = true;
  }
  const TrafficCounter counter(plan, cluster, seats);
  for (UplinkLevel& level : levels) {
    counter.count_domains(level);
    for (std::size_t d = 0; d < kDimensions; ++d) {
      counter.count_edges(level, d);
      if (to_all[d] && has_links(level)) counter.count_link_pairs(level, d);
      if (to_all[d] && !has_links(level)) counter.count_pairs(level, d);
    }
  }
}

}  // namespace orrery
