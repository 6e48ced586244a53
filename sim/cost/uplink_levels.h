#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "models/base/units.h"
#include "models/partition/job_seats.h"
#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/cost/graph_routes.h"
#include "sim/cost/pinned_routes.h"
#include "sim/cost/site_links.h"

namespace orrery {

// The links of a level: those above a switch (of a leaf, a part of the spine, a pod), those between groups of a
// dragonfly, those of a torus, those between sites, the NICs of a node that has a slow one, the NVLinks over which
// bytes reach the NIC of another rail, where rails are not joined, the ports of a NIC, where a hash draws the plane, or
// those between switches that are cabled in any way; or the NICs of ranks to which too many others send at once, the
// single uplinks of leaves to which flows are pinned, or the switches that add a latency alone.
enum class UplinkKind : std::uint8_t {
  switches,
  groups,
  torus,
  sites,
  slow_nics,
  rail_change,
  ports,
  graph,
  incast,
  pinned,
  hops
};

// A level of links above the nodes' NICs, and what the process groups of each dimension of parallelism send over it.
struct UplinkLevel {
  std::int64_t gpus = 0;  // number of GPUs in a domain
  double capacity = 0;    // rate of all uplinks of a domain in each direction, bytes per second
  // If a hash chooses uplinks: the uplinks of one switch (0: flows spread evenly), the rate of one in bytes per
  // second, the switches of a domain, and the NICs on one of them.
  std::int64_t hashed_uplinks = 0, queue_pairs = 1, switches = 1;
  double uplink = 0, switch_nics = 0;
  std::int64_t planes = 1;  // number of planes over which every flow is divided evenly, each hashed on its own
  Seconds away = 0;         // time of a bit from one domain to another
  double buffer = 0;        // bytes that a connection to another domain may have on their way
  // For groups of a dragonfly: rate from one to one other, bytes per second (0: no groups), and whether bytes may go
  // over others.
  double one_way = 0;
  bool detours = false;
  const Torus* torus = nullptr;  // whose links are the level
  // The switches whose links are the level. `edges` and `pairs` are then those of the link that needs longest, times
  // the rate of a node's NICs (which is `capacity`) over that of the link; a node's bytes are divided evenly over its
  // NICs.
  std::shared_ptr<GraphRoutes> graph;
  std::shared_ptr<const PinnedRoutes> pinned;  // the single uplinks of leaves, of which the same holds as of a graph
  std::shared_ptr<const SiteLinkUse> site;     // of a link between two sites of a list
  std::vector<std::int64_t> slow_gpus;  // the GPUs beside a NIC that alone is slow, in order, if the level is this NIC
  // The switches of one domain whose hashed uplinks have faults, how many of these work on such a switch, and the rate
  // of its slowest uplink over that of the others.
  std::int64_t faulty_switches = 0, fewest_uplinks = 0;
  double slow_uplink = 1;
  double load = 0;           // share of the time that bursts of other jobs fill the links
  Seconds burst = 0;         // how long one lasts; 0: their load is spread evenly
  Seconds hop = 0;           // time that the switches of the level add to a message that crosses it
  std::int64_t senders = 0;  // of incast: ranks that may send to one at once without effect; 0: not of incast
  double forward = 0;        // seconds that NVLink takes for a byte on its way to the NIC of another rail
  UplinkKind kind = UplinkKind::switches;
  std::int64_t domains = 1;  // number of domains that the job has ranks in
  // For each dimension, the most domain boundaries that the ring of one group crosses, and the pairs of ranks between
  // which the busiest node of a group sends as all-to-all.
  std::array<double, kDimensions> boundaries{}, node_pairs{};

  // For each dimension of parallelism, over the bytes that one group sends out of a node: the bytes that all groups
  // together send out of the busiest domain, as rings and trees (edges) or as all-to-all (pairs), and the bytes that
  // they send out of that domain's nodes as all-to-all (from_nodes).
  std::array<double, kDimensions> edges{}, pairs{}, from_nodes{};
  // The most ranks of other nodes that send to a rank as all-to-all, and the most other nodes that have such ranks.
  std::array<double, kDimensions> sent_by{}, nodes_by{};
  // The same for what the busiest pair of a dragonfly's groups sends one way. In a torus, `edges` and `pairs` are
  // those of the busiest link.
  std::array<double, kDimensions> one_way_edges{}, one_way_pairs{};
};

// Whether the level's load is that of single links, of which a transfer takes several.
inline bool has_links(const UplinkLevel& level) {
  return level.torus != nullptr || level.graph != nullptr || level.pinned != nullptr || level.site != nullptr;
}

// Whether what one rank sends to another uses a level.
bool crosses(const UplinkLevel& level, const JobSeats& seats, std::int64_t from, std::int64_t to);

// Returns the levels of a cluster that may slow a job's transfers, with what its groups send over them. Tori and sites
// are those of `cluster`, which must outlive the levels.
std::vector<UplinkLevel> uplink_levels(const Plan& plan, const Cluster& cluster, const JobSeats& seats);

}  // namespace orrery
