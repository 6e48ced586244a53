#include "sim/cost/uplinks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "sim/cost/hashed_routes.h"
#include "sim/cost/placement.h"

namespace orrery {
namespace {

constexpr auto kPipeline = static_cast<std::size_t>(Dimension::pipeline);
constexpr double kGbps = 1e9 / 8;  // bytes per second
// A number of GPUs above any cluster's.
constexpr std::int64_t kAllGpus = 1'000'000'000'000;
// Bytes of the buffer of a connection that carries large messages (NCCL_BUFFSIZE; protocol Simple).
constexpr double kBuffer = 4 << 20;

}  // namespace

Uplinks::Uplinks(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus)
    : plan_(plan), node_gpus_(node_gpus), places_(places_of(cluster, node_gpus)) {
  const double gpu_rate = cluster.nics * cluster.nic_Gbps * kGbps / cluster.gpus_per_node;
  if (cluster.oversubscribed_above_gpus > 0 && cluster.oversubscription > 1) {
    const double nics = gpu_rate * static_cast<double>(cluster.oversubscribed_above_gpus);
    add({.gpus = cluster.oversubscribed_above_gpus, .capacity = nics / cluster.oversubscription}, gpu_rate);
  }
  if (cluster.network) {
    add_leaves(cluster);
    add_sites(cluster);
    add_slow_nics(cluster);
  }
  std::array<bool, kDimensions> to_all{};
  for (const Op& op : plan.ops) {
    const auto* c = std::get_if<Collective>(&op.work);
    if (c != nullptr && c->kind == CollectiveKind::all_to_all) to_all[static_cast<std::size_t>(c->group)] = true;
  }
  for (Level& level : levels_) {
    count_domains(level);
    for (std::size_t d = 0; d < kDimensions; ++d) {
      count_edges(level, d);
      if (to_all[d]) count_pairs(level, d);
    }
  }
}

// Adds a level, unless its uplinks spread flows evenly and are as fast as the NICs below them.
void Uplinks::add(Level level, double gpu_rate) {
  const bool short_of = level.capacity < gpu_rate * static_cast<double>(level.gpus) * (1 - 1e-9);
  if (short_of || level.hashed_uplinks > 0 || level.away > 0) levels_.push_back(level);
}

void Uplinks::add_leaves(const Cluster& cluster) {
  const Network& n = *cluster.network;
  if (n.leaf_nodes == 0) return;
  const double gpu_rate = cluster.nics * cluster.nic_Gbps * kGbps / cluster.gpus_per_node;
  const std::int64_t switches = n.kind == NetworkKind::rails ? std::max(1, cluster.nics) : 1;
  const double uplink = n.leaf_Gbps * kGbps * (1 - n.load);
  const std::int64_t working = least_uplinks(cluster, node_gpus_, places_, plan_.workers());
  const double leaf = static_cast<double>(switches * working) * uplink;
  const bool apart = n.spine_leaves > 1;  // whether the spine's parts are a level above the leaves
  add({.gpus = n.leaf_nodes * cluster.gpus_per_node,
       .capacity = apart ? leaf : leaf / n.spine_ratio,
       .hashed_uplinks = n.routing == Routing::ecmp ? working : 0,
       .queue_pairs = n.queue_pairs,
       .switches = switches,
       .uplink = uplink,
       .switch_nics = static_cast<double>(n.leaf_nodes * cluster.nics) / static_cast<double>(switches)},
      gpu_rate);
  if (apart)
    add({.gpus = n.spine_leaves > kAllGpus / n.leaf_nodes ? kAllGpus
                                                          : n.spine_leaves * n.leaf_nodes * cluster.gpus_per_node,
         .capacity = static_cast<double>(switches * n.leaf_uplinks * n.spine_leaves) * uplink / n.spine_ratio},
        gpu_rate);
}

void Uplinks::add_sites(const Cluster& cluster) {
  const Network& n = *cluster.network;
  if (n.site_nodes == 0) return;
  const double gpu_rate = cluster.nics * cluster.nic_Gbps * kGbps / cluster.gpus_per_node;
  add({.gpus = n.site_nodes > kAllGpus / cluster.gpus_per_node ? kAllGpus : n.site_nodes * cluster.gpus_per_node,
       .capacity = n.site_Gbps * kGbps,
       .away = n.site_ms * 1e-3,
       .kind = UplinkKind::sites},
      gpu_rate);
}

void Uplinks::add_slow_nics(const Cluster& cluster) {
  const double rate = slowest_nic_Gbps(cluster, node_gpus_, places_, plan_.workers());
  const auto nics = static_cast<double>(cluster.nics) * static_cast<double>(node_gpus_) / cluster.gpus_per_node;
  add({.gpus = node_gpus_,
       .capacity = nics * rate * kGbps,
       .switches = std::max<std::int64_t>(1, std::llround(nics)),
       .kind = UplinkKind::slow_nics},
      cluster.nics * cluster.nic_Gbps * kGbps / cluster.gpus_per_node);
}

std::int64_t Uplinks::domain_of(const Level& level, std::int64_t rank) const {
  if (places_.empty()) return rank / level.gpus;
  const std::int64_t seat = plan_.seat_of(rank), node = seat / node_gpus_;
  const std::int64_t place = node < std::ssize(places_) ? places_[node] : node;
  return (place * node_gpus_ + seat % node_gpus_) / level.gpus;
}

// A pipeline sends activations forward and gradients back. The busiest domain of either direction counts; where both
// leave one domain at the same moment, they meet in the engine (Contention).
void Uplinks::count_edges(Level& level, std::size_t dimension) const {
  std::map<std::int64_t, double> forward, back;
  double& most = level.edges[dimension];
  double boundaries = 0;
  const auto leave = [&](std::int64_t from, std::int64_t to, std::map<std::int64_t, double>& leaving) {
    const std::int64_t domain = domain_of(level, from);
    if (domain == domain_of(level, to) || node_of(from) == node_of(to)) return;
    most = std::max(most, ++leaving[domain]);
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

void Uplinks::count_domains(Level& level) const {
  std::set<std::int64_t> domains;
  for (std::int64_t rank = 0; rank < plan_.workers(); ++rank) domains.insert(domain_of(level, rank));
  level.domains = std::max<std::int64_t>(1, std::ssize(domains));
}

// Finds for each domain how many pairs of ranks cross its boundary: a group with n members, k of them inside the
// domain, has k (n - k) such pairs. The pairs that cross the boundary of a node are counted in the same way.
void Uplinks::count_pairs(Level& level, std::size_t dimension) const {
  struct Sent {
    double away = 0, from_nodes = 0;
  };
  std::map<std::int64_t, Sent> sent;
  for (const auto& group : plan_.dimensions[dimension].groups) {
    std::map<std::int64_t, double> in_domain, in_node;
    for (const std::int32_t rank : group) {
      ++in_domain[domain_of(level, rank)];
      ++in_node[node_of(rank)];
    }
    const auto size = static_cast<double>(group.size());
    double node = 0;
    for (const auto& [id, members] : in_node) node = std::max(node, members * (size - members));
    if (node == 0) continue;
    level.node_pairs[dimension] = std::max(level.node_pairs[dimension], node);
    for (const auto& [domain, members] : in_domain) {
      if (members < size) sent[domain].away += members * (size - members) / node;
    }
    for (const std::int32_t rank : group) {
      const double members = in_node[node_of(rank)];
      sent[domain_of(level, rank)].from_nodes += (size - members) / node;
    }
  }
  for (const auto& [domain, s] : sent) {
    if (s.away <= level.pairs[dimension]) continue;
    level.pairs[dimension] = s.away;
    level.from_nodes[dimension] = s.from_nodes;
  }
}

std::uint32_t Uplinks::crossed(std::int64_t from, std::int64_t to) const {
  std::uint32_t levels = 0;
  for (std::size_t l = 0; l < levels_.size(); ++l)
    levels |= domain_of(levels_[l], from) != domain_of(levels_[l], to) ? 1U << l : 0;
  return levels;
}

std::uint32_t Uplinks::crossed(Dimension d, std::int64_t rank) const {
  if (levels_.empty()) return 0;
  const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(d)];
  const auto& group = table.groups[table.member_of[rank]];
  // Members are in rank order, so if nodes are too, the group is in more than one domain if its first and last members
  // are.
  if (places_.empty()) return crossed(group.front(), group.back());
  std::uint32_t levels = 0;
  for (const std::int32_t member : group) levels |= crossed(group.front(), member);
  return levels;
}

// Returns the seconds that a level's uplinks need for a transfer. Rings that use fewer NICs than there are rails use
// the uplinks of their own rails alone; where an NVLink domain is larger than the level's, each has its part of the
// bytes.
Seconds Uplinks::need(const Level& level, Dimension d, Pattern pattern, const NodeTraffic& sent) const {
  const bool pairs = pattern == Pattern::pairs;
  const double away = (pairs ? level.pairs : level.edges)[static_cast<std::size_t>(d)];
  const double nics = away * static_cast<double>(std::max<std::int64_t>(1, sent.nics));
  const double rails = pairs ? 1 : std::min(1.0, nics / static_cast<double>(level.switches));
  const double part = std::min(1.0, static_cast<double>(level.gpus) / static_cast<double>(node_gpus_));
  return away > 0 ? away * part * sent.bytes / (level.capacity * rails) : 0;
}

// Returns the least time of a transfer between sites whose connections may each have as much on its way as NCCL's
// buffer holds, until an acknowledgement is back. An all-to-all has a connection for every pair of ranks.
Seconds Uplinks::waiting(const Level& level, std::size_t d, Pattern pattern, const NodeTraffic& sent) const {
  const double connections = pattern == Pattern::pairs ? level.node_pairs[d] : static_cast<double>(sent.channels);
  return sent.bytes / std::max(1.0, connections) * 2 * level.away / kBuffer;
}

Seconds Uplinks::least_time(Dimension d, Pattern pattern, const NodeTraffic& sent) const {
  Seconds most = 0;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if ((sent.levels >> l & 1) != 0) most = std::max(most, need(levels_[l], d, pattern, sent));
  }
  return most;
}

Seconds Uplinks::time(std::size_t op, Dimension d, Pattern pattern, const NodeTraffic& sent) {
  const auto dimension = static_cast<std::size_t>(d);
  Seconds most = std::max(sent.seconds, least_time(d, pattern, sent)), trips = 0;
  if (!(sent.seconds > 0)) return most;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const Level& level = levels_[l];
    if ((sent.levels >> l & 1) == 0) continue;
    if (level.hashed_uplinks > 0) most = std::max(most, hashed_time(level, dimension, pattern, sent));
    if (!(level.away > 0)) continue;
    most = std::max(most, waiting(level, dimension, pattern, sent));
    trips += (sent.laps > 0 ? sent.laps * level.boundaries[dimension] : sent.trips) * level.away;
  }
  most += trips;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if ((sent.levels >> l & 1) == 0) continue;
    const Level& level = levels_[l];
    const UplinkUse use = {level.kind, most / sent.seconds, need(level, d, pattern, sent) / most, level.gpus, op};
    if (std::tuple(use.slowdown, use.share) > std::tuple(busiest_.slowdown, busiest_.share)) busiest_ = use;
  }
  return most;
}

// A switch's flows are those of its NICs that send out of the domain at one moment, each over the queue pairs of every
// channel that NCCL opens on the NIC. In a ring or tree these are the
// NICs of the nodes at the boundary, in an all-to-all all NICs for the share of their bytes that leaves the domain.
Seconds Uplinks::hashed_time(const Level& level, std::size_t d, Pattern pattern, const NodeTraffic& sent) const {
  const auto nics = static_cast<double>(std::max<std::int64_t>(1, sent.nics));
  const bool pairs = pattern == Pattern::pairs;
  const double away = pairs ? level.pairs[d] / std::max(level.pairs[d], level.from_nodes[d]) : 1;
  const double flows = pairs ? away * level.switch_nics
                             : std::min(level.switch_nics, level.edges[d] * nics / static_cast<double>(level.switches));
  if (!(flows > 0)) return 0;
  const std::int64_t connections =
      ceil_div(std::max<std::int64_t>(1, sent.channels), std::max<std::int64_t>(1, sent.nics));
  const HashedFlows hashed = {static_cast<std::int64_t>(std::ceil(flows)), level.hashed_uplinks,
                              level.queue_pairs * connections, level.domains * level.switches};
  const double demand = sent.bytes / nics / sent.seconds / level.uplink * flows / static_cast<double>(hashed.flows);
  return sent.seconds * (1 - away + away * mean_slowdown(hashed, demand));
}

NcclChoice over_uplinks(Uplinks& uplinks, std::size_t op, const NcclChoice& choice, Dimension d,
                        const NcclTopology& topology, Uplinks::Pattern pattern, const NodeTraffic& path) {
  if (path.levels == 0 || !(choice.seconds > 0)) return choice;
  NodeTraffic sent = path;
  sent.bytes = choice.nic_share * topology.nics * topology.nic_GBps * 1e9 * choice.seconds;
  sent.nics = topology.nics;
  sent.seconds = choice.seconds;
  sent.channels = choice.channels;
  NcclChoice slowed = choice;
  slowed.uplink_share = uplinks.least_time(d, pattern, sent) / sent.seconds;
  return lasting(slowed, uplinks.time(op, d, pattern, sent));
}

NodeTraffic path_of(CollectiveKind kind, NcclAlgorithm algorithm) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  if (kind == CollectiveKind::all_to_all || algorithm == NcclAlgorithm::point_to_point) return {};
  return {.laps = algorithm == NcclAlgorithm::ring ? passes : 0, .trips = passes};
}

}  // namespace orrery
