#include "sim/cost/uplink_levels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "models/partition/job_places.h"
#include "sim/cost/torus_routes.h"

namespace orrery {
namespace {

constexpr auto kPipeline = static_cast<std::size_t>(Dimension::pipeline);
constexpr double kGbps = 1e9 / 8;  // bytes per second
// A number of GPUs above any cluster's.
constexpr std::int64_t kAllGpus = 1'000'000'000'000;

// The most pairs of a group of `size` ranks that one node has with ranks on other nodes. members: those on each node.
double pairs_of_busiest_node(const std::map<std::int64_t, double>& members, double size) {
  double most = 0;
  for (const auto& [node, count] : members) most = std::max(most, count * (size - count));
  return most;
}

// Makes the levels of a cluster, and counts what the groups of a plan send over them.
class LevelMaker {
 public:
  LevelMaker(const Plan& plan, const Cluster& cluster, const JobSeats& seats)
      : plan_(plan), cluster_(cluster), seats_(seats) {}

  std::vector<UplinkLevel> run();

 private:
  void add(UplinkLevel level, double gpu_rate);
  WorkingPlanes planes_of_job() const;
  void add_leaves();
  void add_ports();
  void add_groups();
  void add_torus();
  void add_graph();
  void add_rail_change();
  void add_sites();
  void add_slow_nics();
  void add_incast();
  void count_edges(UplinkLevel& level, std::size_t dimension) const;
  void count_pairs(UplinkLevel& level, std::size_t dimension) const;
  void count_link_pairs(UplinkLevel& level, std::size_t dimension) const;
  void visit_links_of(const UplinkLevel& level, std::int64_t from, std::int64_t to,
                      const std::function<void(std::int64_t, double)>& visit) const;
  // the node of the cluster that a rank is on
  std::int64_t node_of(std::int64_t rank) const { return seats_.domain_of(cluster_.gpus_per_node, rank); }
  void count_domains(UplinkLevel& level) const;

  const Plan& plan_;
  const Cluster& cluster_;
  const JobSeats& seats_;
  std::vector<UplinkLevel> levels_;
};

std::vector<UplinkLevel> LevelMaker::run() {
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  if (cluster_.oversubscribed_above_gpus > 0 && cluster_.oversubscription > 1) {
    const double nics = gpu_rate * static_cast<double>(cluster_.oversubscribed_above_gpus);
    const double share = cluster_.network ? cluster_.network->efficiency : 1;
    add({.gpus = cluster_.oversubscribed_above_gpus, .capacity = share * nics / cluster_.oversubscription}, gpu_rate);
  }
  if (cluster_.network) {
    add_leaves();
    add_ports();
    add_groups();
    add_torus();
    add_graph();
    add_rail_change();
    add_sites();
    add_slow_nics();
    add_incast();
  }
  std::array<bool, kDimensions> to_all{};
  for (const Op& op : plan_.ops) {
    const auto* c = std::get_if<Collective>(&op.work);
    if (c != nullptr && c->kind == CollectiveKind::all_to_all) to_all[static_cast<std::size_t>(c->group)] = true;
  }
  for (UplinkLevel& level : levels_) {
    count_domains(level);
    for (std::size_t d = 0; d < kDimensions; ++d) {
      count_edges(level, d);
      const bool links = level.torus != nullptr || level.graph != nullptr;
      if (to_all[d] && links) count_link_pairs(level, d);
      if (to_all[d] && !links) count_pairs(level, d);
    }
  }
  return std::move(levels_);
}

// Adds a level, unless its uplinks spread flows evenly and are as fast as the NICs below them.
void LevelMaker::add(UplinkLevel level, double gpu_rate) {
  const bool short_of = level.capacity < gpu_rate * static_cast<double>(level.gpus) * (1 - 1e-9);
  const bool routed = level.one_way > 0 || level.torus != nullptr || level.graph != nullptr || level.forward > 0;
  if (short_of || routed || level.hashed_uplinks > 0 || level.away > 0) levels_.push_back(level);
}

void LevelMaker::add_leaves() {
  const Network& n = *cluster_.network;
  if (n.leaf_nodes == 0) return;
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  const std::int64_t switches = has_rails(n.kind) ? std::max(1, cluster_.nics) : 1;
  const std::int64_t working = least_uplinks(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers());
  const WorkingPlanes planes = planes_of_job();
  // Storage is taken to be on leaves of its own in the job's part of the spine; a leaf may have all nodes of the job.
  const std::int64_t nodes = std::min(n.leaf_nodes, ceil_div(plan_.workers(), seats_.node_gpus()));
  const double to_storage = n.storage_Gbps * static_cast<double>(nodes * cluster_.nics) /
                            static_cast<double>(switches * working * planes.of_leaves);
  const double free = n.leaf_Gbps * n.efficiency * (1 - n.load);
  const double uplink = left_beside(free, to_storage) * kGbps;
  const double leaf = static_cast<double>(switches * working * planes.of_leaves) * uplink;
  const bool apart = n.spine_leaves > 1;  // whether the spine's parts are a level above the leaves
  add({.gpus = n.leaf_nodes * cluster_.gpus_per_node,
       .capacity = apart ? leaf : leaf / n.spine_ratio,
       .hashed_uplinks = n.routing == Routing::ecmp ? working * (n.hashed_planes ? planes.of_leaves : 1) : 0,
       .queue_pairs = n.queue_pairs,
       .switches = switches,
       .uplink = uplink,
       .switch_nics = static_cast<double>(n.leaf_nodes * cluster_.nics) / static_cast<double>(switches),
       .planes = n.hashed_planes ? 1 : planes.of_leaves},
      gpu_rate);
  if (apart)
    add({.gpus = n.spine_leaves > kAllGpus / n.leaf_nodes ? kAllGpus
                                                          : n.spine_leaves * n.leaf_nodes * cluster_.gpus_per_node,
         .capacity = static_cast<double>(switches * n.leaf_uplinks * n.spine_leaves * planes.of_spine) * free * kGbps /
                     n.spine_ratio},
        gpu_rate);
}

WorkingPlanes LevelMaker::planes_of_job() const {
  return working_planes(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers());
}

// A NIC's queue pairs meet on its ports, each of which has its part of the NIC's rate.
void LevelMaker::add_ports() {
  const Network& n = *cluster_.network;
  if (n.planes < 2 || !n.hashed_planes) return;
  const auto nics =
      static_cast<double>(cluster_.nics) * static_cast<double>(seats_.node_gpus()) / cluster_.gpus_per_node;
  add({.gpus = seats_.node_gpus(),
       .capacity = std::numeric_limits<double>::infinity(),
       .hashed_uplinks = planes_of_job().of_nics,
       .queue_pairs = n.queue_pairs,
       .switches = std::max<std::int64_t>(1, std::llround(nics)),
       .uplink = cluster_.nic_Gbps * n.efficiency * kGbps / static_cast<double>(n.planes),
       .switch_nics = 1,
       .kind = UplinkKind::ports},
      0);
}

void LevelMaker::add_groups() {
  const Network& n = *cluster_.network;
  if (n.kind != NetworkKind::dragonfly) return;
  const std::int64_t nodes = n.leaf_nodes > kAllGpus / n.groups.leaves ? kAllGpus : n.leaf_nodes * n.groups.leaves;
  const std::int64_t groups = ceil_div(static_cast<std::int64_t>(cluster_.nodes), nodes);
  if (groups < 2) return;
  const std::int64_t links = n.groups.leaves * n.groups.links * planes_of_job().of_spine;
  const double all = static_cast<double>(links) * n.groups.Gbps * n.efficiency * kGbps * (1 - n.load);
  add({.gpus = nodes * cluster_.gpus_per_node,
       .capacity = all,
       .one_way = all / static_cast<double>(groups - 1),
       .detours = n.routing == Routing::adaptive,
       .kind = UplinkKind::groups},
      0);
}

void LevelMaker::add_torus() {
  const Network& n = *cluster_.network;
  if (n.kind != NetworkKind::torus) return;
  add({.gpus = seats_.node_gpus(),
       .capacity = n.torus.Gbps * n.efficiency * kGbps * (1 - n.load),
       .torus = &n.torus,
       .kind = UplinkKind::torus},
      0);
}

void LevelMaker::add_graph() {
  const Network& n = *cluster_.network;
  if (n.kind != NetworkKind::graph) return;
  add({.gpus = cluster_.gpus_per_node,
       .capacity = cluster_.nics * cluster_.nic_Gbps * kGbps,
       .graph = std::make_shared<GraphRoutes>(n.graph),
       .kind = UplinkKind::graph},
      0);
}

// Calls visit(link, weight) for every link of a torus or graph between two nodes of the cluster.
void LevelMaker::visit_links_of(const UplinkLevel& level, std::int64_t from, std::int64_t to,
                                const std::function<void(std::int64_t, double)>& visit) const {
  if (level.torus != nullptr) return visit_links(*level.torus, from, to, [&](std::int64_t link) { visit(link, 1); });
  const auto &out = cluster_.network->graph.leaves[from], &in = cluster_.network->graph.leaves[to];
  for (std::size_t nic = 0; nic < out.size(); ++nic) {
    level.graph->visit_links(out[nic], in[nic], [&](std::int64_t link, double share) {
      const double rate = level.graph->rate_of(link) * cluster_.network->efficiency * (1 - cluster_.network->load);
      visit(link, share / static_cast<double>(out.size()) * level.capacity / rate);
    });
  }
}

// Adds the way over NVLink that an all-to-all's bytes for all rails but a GPU's own take.
void LevelMaker::add_rail_change() {
  const double link =
      pair_GBps(cluster_.gpu) > 0 && cluster_.nvlink_domain > 1 ? pair_GBps(cluster_.gpu) : cluster_.gpu.pcie_GBps;
  const int rails = std::min(cluster_.nics, cluster_.gpus_per_node);
  if (cluster_.network->kind != NetworkKind::rail_only || rails < 2 || !(link > 0)) return;
  add({.gpus = seats_.node_gpus(),
       .capacity = std::numeric_limits<double>::infinity(),
       .forward = 1 / (link * 1e9),
       .kind = UplinkKind::rail_change},
      0);
}

void LevelMaker::add_sites() {
  const Network& n = *cluster_.network;
  if (n.site_nodes == 0) return;
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  add({.gpus = n.site_nodes > kAllGpus / cluster_.gpus_per_node ? kAllGpus : n.site_nodes * cluster_.gpus_per_node,
       .capacity = n.site_Gbps * n.efficiency * kGbps,
       .away = n.site_ms * 1e-3,
       .buffer = n.site_buffer_MiB * (1 << 20),
       .kind = UplinkKind::sites},
      gpu_rate);
}

void LevelMaker::add_slow_nics() {
  const double rate = slowest_nic_Gbps(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers());
  const auto nics =
      static_cast<double>(cluster_.nics) * static_cast<double>(seats_.node_gpus()) / cluster_.gpus_per_node;
  add({.gpus = seats_.node_gpus(),
       .capacity = nics * rate * kGbps,
       .switches = std::max<std::int64_t>(1, std::llround(nics)),
       .kind = UplinkKind::slow_nics},
      cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node);
}

void LevelMaker::add_incast() {
  const Network& n = *cluster_.network;
  if (n.incast_senders == 0) return;
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  const double slowest = slowest_nic_Gbps(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers());
  add({.gpus = seats_.node_gpus(),
       .capacity = static_cast<double>(seats_.node_gpus()) * gpu_rate * slowest / cluster_.nic_Gbps * n.incast_share,
       .senders = n.incast_senders,
       .kind = UplinkKind::incast},
      gpu_rate);
}

// A pipeline sends activations forward and gradients back. The busiest domain of either direction counts; where both
// leave one domain at the same moment, they meet in the engine (Contention).
void LevelMaker::count_edges(UplinkLevel& level, std::size_t dimension) const {
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
    const auto count = [&](std::int64_t link, double weight) {
      most = std::max(most, leaving.by_link[link] += weight);
    };
    if (level.torus != nullptr || level.graph != nullptr)
      visit_links_of(level, node_of(from), node_of(to), count);
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

void LevelMaker::count_domains(UplinkLevel& level) const {
  std::set<std::int64_t> domains;
  for (std::int64_t rank = 0; rank < plan_.workers(); ++rank) domains.insert(seats_.domain_of(level.gpus, rank));
  level.domains = std::max<std::int64_t>(1, std::ssize(domains));
}

// Finds for each domain how many pairs of ranks cross its boundary: a group with n members, k of them inside the
// domain, has k (n - k) such pairs. The pairs that cross the boundary of a node are counted in the same way.
void LevelMaker::count_pairs(UplinkLevel& level, std::size_t dimension) const {
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

void LevelMaker::count_link_pairs(UplinkLevel& level, std::size_t dimension) const {
  const std::int64_t links = level.torus != nullptr ? link_count(*level.torus) : level.graph->link_count();
  std::vector<double> on_link(static_cast<std::size_t>(links));
  for (const auto& group : plan_.dimensions[dimension].groups) {
    std::map<std::int64_t, double> at, in_domain;  // members at each node, and in each NVLink domain
    for (const std::int32_t rank : group) {
      ++at[node_of(rank)];
      ++in_domain[seats_.node_of(rank)];
    }
    const auto size = static_cast<double>(group.size());
    const double node = pairs_of_busiest_node(in_domain, size);
    if (node == 0) continue;
    level.node_pairs[dimension] = std::max(level.node_pairs[dimension], node);
    for (const auto& [from, a] : at) {
      for (const auto& [to, b] : at)
        visit_links_of(level, from, to, [&, pairs = a * b / node](std::int64_t link, double weight) {
          on_link[link] += pairs * weight;
        });
    }
  }
  for (const double pairs : on_link) level.pairs[dimension] = std::max(level.pairs[dimension], pairs);
}

}  // namespace

std::vector<UplinkLevel> uplink_levels(const Plan& plan, const Cluster& cluster, const JobSeats& seats) {
  return LevelMaker(plan, cluster, seats).run();
}

}  // namespace orrery
