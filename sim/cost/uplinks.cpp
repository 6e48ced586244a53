#include "sim/cost/uplinks.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/cost/bursts.h"
#include "sim/cost/hashed_routes.h"

namespace orrery {
namespace {

// Returns what the nodes of a domain send out of it by PAT, over what the last one sends on a ring: `inside` of `nodes`
// nodes of a group are in the domain. To the node at a distance of d each node sends nodes / 2d parts, and the d last
// nodes of the domain, or all of them, send these out of it.
double doubling_edges(double nodes, double inside) {
  double parts = 0;
  for (double distance = 1; distance < nodes; distance *= 2)
    parts += std::min(distance, inside) * std::max(1.0, std::floor(nodes / (2 * distance)));
  return std::max(1.0, parts / (nodes - 1));
}

// Returns the number of the connections that a dimension's groups, or its messages of one way, have at a level.
std::uint64_t connections_of(UplinkKind level, std::size_t d, Uplinks::Pattern pattern, std::int64_t way) {
  const std::uint64_t set = (d * 2 + static_cast<std::uint64_t>(pattern)) << 4 | static_cast<std::uint64_t>(level);
  return set << 32 | static_cast<std::uint32_t>(way);
}

}  // namespace

Uplinks::Uplinks(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus, HashDraw draw)
    : plan_(plan),
      seats_(plan, cluster, node_gpus),
      nics_as_one_(std::max(1.0, static_cast<double>(cluster.nics) / cluster.gpus_per_node)),
      levels_(uplink_levels(plan, cluster, seats_)),
      tasks_(levels_.empty() ? 0 : plan.ops.size()),
      draw_(std::move(draw)) {
  if (levels_.empty()) return;
  for (std::size_t l = 0; l < levels_.size(); ++l) sites_ |= levels_[l].site != nullptr ? 1U << l : 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) ++tasks_[plan.tasks[t].op];
}

std::uint32_t Uplinks::crossed(std::int64_t from, std::int64_t to) const {
  std::uint32_t levels = 0;
  for (std::size_t l = 0; l < levels_.size(); ++l) levels |= crosses(levels_[l], seats_, from, to) ? 1U << l : 0;
  return levels;
}

std::uint32_t Uplinks::crossed(Dimension d, std::int64_t rank) const {
  if (levels_.empty()) return 0;
  const GroupTable& table = plan_.dimensions[static_cast<std::size_t>(d)];
  const auto& group = table.groups[table.member_of[rank]];
  // Members are in rank order, so if nodes are too, the group is in more than one domain if its first and last members
  // are. The nodes of a graph are in no order, a NIC is of one member, and ways between sites are of pairs.
  const bool any_member = std::ranges::any_of(
      levels_, [](const UplinkLevel& l) { return l.graph != nullptr || l.site != nullptr || !l.slow_gpus.empty(); });
  if (seats_.in_order() && !any_member) return crossed(group.front(), group.back());
  std::uint32_t levels = 0;
  std::vector<std::int64_t> first_of_sites;
  for (const std::int32_t member : group) {
    levels |= crossed(group.front(), member);
    const bool known =
        std::ranges::any_of(first_of_sites, [&](std::int64_t first) { return (crossed(first, member) & sites_) == 0; });
    for (const std::int64_t first : first_of_sites) levels |= crossed(first, member) & sites_;
    if (sites_ != 0 && !known) first_of_sites.push_back(member);
  }
  return levels;
}

std::vector<std::int64_t> Uplinks::ranks_at_slow_nics() const {
  std::vector<std::int64_t> ranks;
  const bool any = std::ranges::any_of(levels_, [](const UplinkLevel& l) { return !l.slow_gpus.empty(); });
  for (std::int64_t rank = 0; any && rank < plan_.workers(); ++rank) {
    const std::int64_t gpu = seats_.domain_of(1, rank);
    for (const UplinkLevel& level : levels_) {
      if (std::ranges::binary_search(level.slow_gpus, gpu)) ranks.push_back(rank);
    }
  }
  return ranks;
}

std::vector<std::vector<int>> Uplinks::crossed_by_classes() const {
  std::vector<std::vector<int>> result(plan_.classes.size(), std::vector<int>(kDimensions));
  if (levels_.empty()) return result;
  const std::vector<std::uint32_t> slots = slots_of_ranks(plan_);
  for (std::size_t d = 0; d < kDimensions; ++d) {
    for (const auto& group : plan_.dimensions[d].groups) {
      const auto levels = static_cast<int>(crossed(static_cast<Dimension>(d), group.front()));
      for (const std::int32_t rank : group) result[slots[static_cast<std::size_t>(rank)]][d] |= levels;
    }
  }
  return result;
}

// Returns the seconds that a level's uplinks need for a transfer. Rings that use fewer NICs than there are rails use
// the uplinks of their own rails alone; where an NVLink domain is larger than the level's, each has its part of the
// bytes.
Seconds Uplinks::need(const UplinkLevel& level, Dimension d, Pattern pattern, const NodeTraffic& sent) const {
  const bool pairs = pattern == Pattern::pairs;
  const double senders = (sent.by_node ? level.nodes_by : level.sent_by)[static_cast<std::size_t>(d)];
  if (level.senders > 0 && (!pairs || senders <= static_cast<double>(level.senders))) return 0;
  const double crossing = (pairs ? level.pairs : level.edges)[static_cast<std::size_t>(d)];
  const double away = sent.doubling ? crossing * doubled(level, d) : crossing;
  const double nics = away * static_cast<double>(std::max<std::int64_t>(1, sent.nics));
  const bool spread = pairs || level.graph != nullptr || level.pinned != nullptr || level.site != nullptr;
  const double rails = spread ? 1 : std::min(1.0, nics / static_cast<double>(level.switches));
  const double part = std::min(1.0, static_cast<double>(level.gpus) / static_cast<double>(seats_.node_gpus()));
  const Seconds all = away > 0 ? away * part * sent.bytes / (level.capacity * rails) : 0;
  if (level.one_way == 0) return all;
  const double between = (pairs ? level.one_way_pairs : level.one_way_edges)[static_cast<std::size_t>(d)];
  const Seconds direct = between * part * sent.bytes / level.one_way;
  const Seconds around = 2 * away * part * sent.bytes / (level.capacity + level.one_way);
  return std::max(all, level.detours ? std::min(direct, around) : direct);
}

// Returns by how much more a group's PAT sends out of a domain than a ring; links of a torus are taken to carry as
// much.
double Uplinks::doubled(const UplinkLevel& level, Dimension d) const {
  const auto nodes = static_cast<double>(plan_.dimensions[static_cast<std::size_t>(d)].groups.front().size());
  if ((has_links(level) && level.site == nullptr) || nodes < 2) return 1;
  const std::int64_t gpus = level.site != nullptr ? level.site->nodes() * level.gpus : level.gpus;
  return doubling_edges(nodes, static_cast<double>(std::max<std::int64_t>(1, gpus / seats_.node_gpus())));
}

// Returns the time in which the GPUs of a group on one node pass each other the bytes for NICs of other rails. Each has
// a NIC, or several that work as one.
Seconds Uplinks::forwarding(const UplinkLevel& level, const NodeTraffic& sent) const {
  const double gpus = std::max(1.0, static_cast<double>(sent.nics) / nics_as_one_);
  return (1 - 1 / gpus) * sent.bytes / gpus * level.forward;
}

// Returns the least time of a transfer between sites whose connections may each have as much on its way as its
// buffer holds, until an acknowledgement is back. An all-to-all has a connection for every pair of ranks.
Seconds Uplinks::waiting(const UplinkLevel& level, std::size_t d, Pattern pattern, const NodeTraffic& sent) const {
  const double connections = pattern == Pattern::pairs ? level.node_pairs[d] : static_cast<double>(sent.channels);
  return sent.bytes / std::max(1.0, connections) * 2 * level.away / level.buffer;
}

Seconds Uplinks::least_time(Dimension d, Pattern pattern, const NodeTraffic& sent) const {
  return levels_.empty() ? 0 : needed(fullest(d, pattern, sent), d, pattern, sent);
}

std::uint8_t Uplinks::fullest(Dimension d, Pattern pattern, const NodeTraffic& sent) const {
  std::size_t most = 0;
  for (std::size_t l = 1; l < levels_.size(); ++l) {
    if (needed(l, d, pattern, sent) > needed(most, d, pattern, sent)) most = l;
  }
  return static_cast<std::uint8_t>(most);
}

Seconds Uplinks::needed(std::size_t level, Dimension d, Pattern pattern, const NodeTraffic& sent) const {
  return (sent.levels >> level & 1) != 0 ? need(levels_[level], d, pattern, sent) : 0;
}

Seconds Uplinks::time(std::size_t op, Dimension d, Pattern pattern, const NodeTraffic& sent) {
  const auto dimension = static_cast<std::size_t>(d);
  Seconds most = std::max(sent.seconds, least_time(d, pattern, sent)), trips = 0;
  if (!(sent.seconds > 0)) return most;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    const UplinkLevel& level = levels_[l];
    if ((sent.levels >> l & 1) == 0) continue;
    if (level.hashed_uplinks > 0) most = std::max(most, hashed_time(op, level, dimension, pattern, sent));
    if (level.burst > 0) most = std::max(most, among_bursts(level, d, need(level, d, pattern, sent)));
    if (level.hop > 0) trips += hops_of(level, dimension, sent) * level.hop;
    if (pattern == Pattern::pairs) trips += forwarding(level, sent);
    if (!(level.away > 0)) continue;
    most = std::max(most, waiting(level, dimension, pattern, sent));
    trips += (sent.laps > 0 ? sent.laps * level.boundaries[dimension] : sent.trips) * level.away;
  }
  most += trips;
  for (std::size_t l = 0; l < levels_.size(); ++l) {
    if ((sent.levels >> l & 1) == 0) continue;
    const UplinkLevel& level = levels_[l];
    const Seconds added = static_cast<double>(tasks_[op]) * (most - sent.seconds);
    const std::int64_t gpus = level.site != nullptr ? level.site->nodes() * level.gpus : level.gpus;
    const UplinkUse use = {level.kind, most / sent.seconds, need(level, d, pattern, sent) / most, gpus, op, added};
    if (std::tuple(use.added, use.share) > std::tuple(busiest_.added, busiest_.share)) busiest_ = use;
  }
  return most;
}

// Returns how often a byte crosses a level, one time after the other: a ring's at every boundary of a lap, a tree's at
// as many of its levels as join so many domains.
double Uplinks::hops_of(const UplinkLevel& level, std::size_t d, const NodeTraffic& sent) const {
  if (sent.laps > 0) return sent.laps * level.boundaries[d];
  if (!sent.tree && !sent.doubling) return sent.trips;
  return sent.trips * std::max(1.0, std::ceil(std::log2(std::max(1.0, level.boundaries[d]))));
}

// Returns the time of a transfer that the links of a level need `evenly` for beside an even load, if the load comes in
// bursts: those of the domains of one group, or of the two that a stage sends between. What NICs send meanwhile waits
// before the links, so that a transfer that its NICs limit hides this part.
Seconds Uplinks::among_bursts(const UplinkLevel& level, Dimension d, Seconds evenly) const {
  if (!(evenly > 0)) return 0;
  const auto boundaries = static_cast<std::int64_t>(level.boundaries[static_cast<std::size_t>(d)]);
  const std::int64_t domains = d == Dimension::pipeline ? 2 : std::clamp<std::int64_t>(boundaries, 1, level.domains);
  return time_among_bursts(evenly * (1 - level.load), {level.load, level.burst, domains});
}

// A switch's flows are those of its NICs that send out of the domain at one moment, each over the queue pairs of every
// channel that NCCL opens on the NIC. In a ring or tree these are the
// NICs of the nodes at the boundary, in an all-to-all all NICs for the share of their bytes that leaves the domain.
Seconds Uplinks::hashed_time(std::size_t op, const UplinkLevel& level, std::size_t d, Pattern pattern,
                             const NodeTraffic& sent) {
  const auto nics = static_cast<double>(std::max<std::int64_t>(1, sent.nics));
  const bool pairs = pattern == Pattern::pairs;
  const double away = pairs ? level.pairs[d] / std::max(level.pairs[d], level.from_nodes[d]) : 1;
  const double flows = pairs ? away * level.switch_nics
                             : std::min(level.switch_nics, level.edges[d] * nics / static_cast<double>(level.switches));
  if (!(flows > 0)) return 0;
  const std::int64_t connections =
      ceil_div(std::max<std::int64_t>(1, sent.channels), std::max<std::int64_t>(1, sent.nics));
  const HashedFlows of_switch = {.flows = static_cast<std::int64_t>(std::ceil(flows)),
                                 .uplinks = level.hashed_uplinks,
                                 .queue_pairs = ceil_div(level.queue_pairs * connections, level.planes),
                                 .switches = level.domains * level.switches * level.planes,
                                 .faulty = level.faulty_switches * level.planes,
                                 .fewest = level.fewest_uplinks,
                                 .slowest = level.slow_uplink};
  const double demand =
      sent.bytes / nics / sent.seconds / level.uplink * flows / static_cast<double>(of_switch.flows * level.planes);
  const std::uint64_t set = connections_of(level.kind, d, pattern, sent.way);
  HashedTransfers& longest = hashed_[set];
  const Seconds time = static_cast<double>(tasks_[op]) * sent.seconds;
  if (time >= longest.time) longest = {of_switch, demand, time};
  const std::optional<double> share = draw_.share_of(set);
  return sent.seconds *
         (1 - away + away * (share ? slowdown_at(of_switch, demand, *share) : mean_slowdown(of_switch, demand)));
}

NcclChoice over_uplinks(Uplinks& uplinks, std::size_t op, const NcclChoice& choice, Dimension d,
                        const NcclTopology& topology, Uplinks::Pattern pattern, const NodeTraffic& path) {
  if (path.levels == 0 || !(choice.seconds > 0)) return choice;
  NodeTraffic sent = path;
  sent.bytes = choice.nic_share * topology.nics * topology.nic_GBps * 1e9 * choice.seconds;
  sent.nics = std::llround(topology.nics * uplinks.nics_as_one());
  sent.seconds = choice.seconds;
  sent.channels = choice.channels;
  NcclChoice slowed = choice;
  slowed.uplink_share = uplinks.least_time(d, pattern, sent) / sent.seconds;
  slowed.uplink_level = uplinks.fullest(d, pattern, sent);
  return lasting(slowed, uplinks.time(op, d, pattern, sent));
}

NodeTraffic path_of(CollectiveKind kind, NcclAlgorithm algorithm) {
  const double passes = kind == CollectiveKind::all_reduce ? 2 : 1;
  if (kind == CollectiveKind::all_to_all || algorithm == NcclAlgorithm::point_to_point) return {};
  return {.laps = algorithm == NcclAlgorithm::ring ? passes : 0,
          .trips = passes,
          .tree = algorithm != NcclAlgorithm::ring,
          .doubling = algorithm == NcclAlgorithm::pat};
}

}  // namespace orrery
