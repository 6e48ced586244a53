#include "sim/cost/uplink_levels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/partition/job_places.h"
#include "sim/cost/uplink_counts.h"

namespace orrery {
namespace {

constexpr double kGbps = 1e9 / 8;  // bytes per second

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
  void add_pinned(const UplinkLevel& leaf, double uplink);
  void add_spine();
  void add_ports();
  void add_groups();
  void add_torus();
  void add_graph();
  void add_rail_change();
  void add_sites();
  void add_site_links();
  void add_slow_nics();
  void add_slow_nic();
  void add_incast();
  void add_hops();
  std::int64_t gpus_of_leaves(std::int64_t leaves) const;
  double rails() const { return has_rails(cluster_.network->kind) ? std::max(1, cluster_.nics) : 1; }
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
    add_spine();
    add_ports();
    add_groups();
    add_torus();
    add_graph();
    add_rail_change();
    add_sites();
    add_slow_nics();
    add_slow_nic();
    add_incast();
    add_hops();
  }
  return std::move(levels_);
}

// Adds a level, unless its uplinks spread flows evenly and are as fast as the NICs below them.
void LevelMaker::add(UplinkLevel level, double gpu_rate) {
  const bool short_of = level.capacity < gpu_rate * static_cast<double>(level.gpus) * (1 - 1e-9);
  const bool routed = level.one_way > 0 || has_links(level) || level.forward > 0;
  const bool waits = level.hashed_uplinks > 0 || level.away > 0 || level.burst > 0 || level.hop > 0;
  if (short_of || routed || waits) levels_.push_back(level);
}

void LevelMaker::add_leaves() {
  const Network& n = *cluster_.network;
  if (n.leaf_nodes == 0) return;
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  const auto switches = static_cast<std::int64_t>(rails());
  const std::int64_t working = least_uplinks(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers());
  const WorkingPlanes planes = planes_of_job();
  // Storage is taken to be on leaves of its own in the job's part of the spine; a leaf may have all nodes of the job.
  const std::int64_t nodes = std::min(n.leaf_nodes, ceil_div(plan_.workers(), seats_.node_gpus()));
  const double to_storage = n.storage_Gbps * static_cast<double>(nodes * cluster_.nics) /
                            static_cast<double>(switches * working * planes.of_leaves);
  const double free = n.leaf_Gbps * n.efficiency * left_on_leaves(n);
  const double uplink = left_beside(free, to_storage) * kGbps;
  const SlowUplinks slow = slow_uplinks(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers());
  // If flows are spread by number, each uplink has as many, and all wait for the slowest one.
  const double links = n.routing == Routing::d_mod_k ? static_cast<double>(working) * slow.slowest
                                                     : static_cast<double>(working) - slow.lost;
  const double leaf = static_cast<double>(switches * planes.of_leaves) * links * uplink;
  const std::int64_t hashed_planes = n.hashed_planes ? planes.of_leaves : 1;
  const bool apart = n.spine_leaves > 1;  // whether the spine's parts are a level above the leaves
  const UplinkLevel level = {
      .gpus = n.leaf_nodes * cluster_.gpus_per_node,
      .capacity = apart ? leaf : leaf / n.spine_ratio,
      .hashed_uplinks = n.routing == Routing::ecmp ? n.leaf_uplinks * hashed_planes : 0,
      .queue_pairs = n.queue_pairs,
      .switches = switches,
      .uplink = uplink,
      .switch_nics = static_cast<double>(n.leaf_nodes * cluster_.nics) / static_cast<double>(switches),
      .planes = n.hashed_planes ? 1 : planes.of_leaves,
      .faulty_switches = working < n.leaf_uplinks || slow.slowest < 1 ? switches : 0,
      .fewest_uplinks = working * hashed_planes,
      .slow_uplink = slow.slowest,
      .load = 1 - left_on_leaves(n),
      .burst = n.loaded == LoadedLinks::spine ? 0 : n.burst_ms * 1e-3};
  add(level, gpu_rate);
  if (n.routing == Routing::pinned) add_pinned(level, uplink * static_cast<double>(planes.of_leaves));
}

// uplink: the rate of one, in all planes.
void LevelMaker::add_pinned(const UplinkLevel& leaf, double uplink) {
  add({.gpus = cluster_.gpus_per_node,
       .capacity = cluster_.nics * cluster_.nic_Gbps * kGbps,
       .uplink = uplink,
       .pinned = std::make_shared<PinnedRoutes>(cluster_),
       .load = leaf.load,
       .burst = leaf.burst,
       .kind = UplinkKind::pinned},
      0);
}

// The number of GPUs below so many leaves of every rail.
std::int64_t LevelMaker::gpus_of_leaves(std::int64_t leaves) const {
  return gpus_of_sets(cluster_, cluster_.network->leaf_nodes, leaves);
}

// The rate that leaves a part of the spine is that of what comes up into it over its ratio, level by level.
void LevelMaker::add_spine() {
  const Network& n = *cluster_.network;
  if (n.leaf_nodes == 0 || n.spine_leaves < 2) return;
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  const double free = n.leaf_Gbps * n.efficiency * left_above(n);
  std::vector<SpineLevel> parts = n.upper_spine;
  parts.insert(parts.begin(), {n.spine_leaves, n.spine_ratio});
  double ratio = 1;
  for (const SpineLevel& part : parts) {
    ratio *= part.ratio;
    const auto switches = static_cast<std::int64_t>(rails());
    add({.gpus = gpus_of_leaves(part.leaves),
         .capacity = static_cast<double>(switches * n.leaf_uplinks * part.leaves * planes_of_job().of_spine) * free *
                     kGbps / ratio,
         .load = 1 - left_above(n),
         .burst = n.loaded == LoadedLinks::leaf ? 0 : n.burst_ms * 1e-3},
        gpu_rate);
  }
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
  if (!has_groups(n.kind)) return;
  const std::int64_t gpus = gpus_of_leaves(n.groups.leaves);
  const std::int64_t groups = ceil_div(static_cast<std::int64_t>(cluster_.nodes) * cluster_.gpus_per_node, gpus);
  if (groups < 2) return;
  const std::int64_t switches = n.kind == NetworkKind::dragonfly_plus ? n.groups.spines : n.groups.leaves;
  const std::int64_t links = switches * n.groups.links * planes_of_job().of_spine;
  const double all = static_cast<double>(links) * n.groups.Gbps * n.efficiency * kGbps * left_above(n);
  add({.gpus = gpus,
       .capacity = all,
       .one_way = all / static_cast<double>(groups - 1),
       .detours = n.routing == Routing::adaptive,
       .load = 1 - left_above(n),
       .burst = n.loaded == LoadedLinks::leaf ? 0 : n.burst_ms * 1e-3,
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
  add_site_links();
  if (n.site_nodes == 0) return;
  const double gpu_rate = cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node;
  add({.gpus = gpus_of_sets(cluster_, n.site_nodes, 1),
       .capacity = n.site_Gbps * n.efficiency * kGbps,
       .away = n.site_ms * 1e-3,
       .buffer = n.site_buffer_MiB * (1 << 20),
       .kind = UplinkKind::sites},
      gpu_rate);
}

// The links between sites of a list are a level each: what is between any two sites takes those on its way.
void LevelMaker::add_site_links() {
  const Network& n = *cluster_.network;
  for (std::size_t l = 0; l < n.site_links.size(); ++l) {
    const SiteLink& link = n.site_links[l];
    add({.gpus = cluster_.gpus_per_node,
         .capacity = link.Gbps * n.efficiency * kGbps,
         .away = link.ms * 1e-3,
         .buffer = link.buffer_MiB * (1 << 20),
         .site = std::make_shared<SiteLinkUse>(n, l),
         .kind = UplinkKind::sites},
        0);
  }
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

// The transfers of GPUs beside a slow NIC, and of groups with such a GPU, get no more of any NIC than of this one:
// NCCL divides their bytes evenly.
void LevelMaker::add_slow_nic() {
  const auto nics =
      static_cast<double>(cluster_.nics) * static_cast<double>(seats_.node_gpus()) / cluster_.gpus_per_node;
  for (SlowNics& slow : slow_nics(cluster_, seats_.node_gpus(), seats_.places(), plan_.workers()))
    add({.gpus = seats_.node_gpus(),
         .capacity = nics * slow.Gbps * kGbps,
         .switches = std::max<std::int64_t>(1, std::llround(nics)),
         .slow_gpus = std::move(slow.gpus),
         .kind = UplinkKind::slow_nics},
        cluster_.nics * cluster_.nic_Gbps * kGbps / cluster_.gpus_per_node);
}

// Beside the leaf at either end there are a switch of the spine, and two more for each of its levels that is crossed. A
// dragonfly's leaves are joined to each other, and to another group's over two such links.
void LevelMaker::add_hops() {
  const Network& n = *cluster_.network;
  if (n.latency_us == 0 || n.leaf_nodes == 0) return;
  const bool plain = n.kind == NetworkKind::dragonfly;
  const auto add_at = [&](std::int64_t gpus, int links) {
    add({.gpus = gpus,
         .capacity = std::numeric_limits<double>::infinity(),
         .hop = links * n.latency_us * 1e-6,
         .kind = UplinkKind::hops},
        0);
  };
  add_at(gpus_of_leaves(1), plain ? 1 : 2);
  if (n.spine_leaves > 1) add_at(gpus_of_leaves(n.spine_leaves), 2);
  for (const SpineLevel& level : n.upper_spine) add_at(gpus_of_leaves(level.leaves), 2);
  if (has_groups(n.kind)) add_at(gpus_of_leaves(n.groups.leaves), plain ? 2 : 1);
  if (cluster_.oversubscribed_above_gpus > 0) add_at(cluster_.oversubscribed_above_gpus, 2);
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

}  // namespace

bool crosses(const UplinkLevel& level, const JobSeats& seats, std::int64_t from, std::int64_t to) {
  const std::int64_t domain = seats.domain_of(level.gpus, from), other = seats.domain_of(level.gpus, to);
  if (level.graph != nullptr) return !level.graph->beside(domain, other);
  if (level.pinned != nullptr) return level.pinned->leaf_of(domain) != level.pinned->leaf_of(other);
  if (level.site != nullptr) return level.site->way(level.site->site_of(domain), level.site->site_of(other)) != 0;
  const auto slow = [&](std::int64_t rank) {
    return std::ranges::binary_search(level.slow_gpus, seats.domain_of(1, rank));
  };
  return domain != other && (level.slow_gpus.empty() || slow(from) || slow(to));
}

std::vector<UplinkLevel> uplink_levels(const Plan& plan, const Cluster& cluster, const JobSeats& seats) {
  std::vector<UplinkLevel> levels = LevelMaker(plan, cluster, seats).run();
  count_traffic(plan, cluster, seats, levels);
  return levels;
}

}  // namespace orrery
