#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "models/base/units.h"
#include "models/cost/nccl/model.h"
#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/cost/hash_draw.h"
#include "sim/cost/uplink_levels.h"

namespace orrery {

// A transfer of one group as a node's NICs see it when nothing above them is short.
struct NodeTraffic {
  double bytes = 0;           // bytes that a node sends through its NICs
  std::int64_t nics = 1;      // number of a node's NICs that the group uses, each for the same share of the bytes
  Seconds seconds = 0;        // time of the transfer
  std::int64_t channels = 1;  // number of NCCL's channels, each of which has connections of its own
  // The number of times that a ring takes every byte around, 0 for other algorithms; and how often a byte of these goes
  // from one domain to another, one time after the other, until the transfer has ended.
  double laps = 0, trips = 1;
  bool tree = false;      // whether it goes over a tree, so that a byte crosses boundaries at many of its levels
  bool by_node = false;   // whether a rank gets an all-to-all's bytes of a node from one of its ranks (two stages)
  bool doubling = false;  // whether ranks send to those at distances 1, 2, 4, ... (NCCL's PAT) instead of to the next
  std::uint32_t levels = ~0U;  // the levels of uplinks that the transfer uses, a bit for each (Uplinks::crossed)
  std::int64_t way = 0;        // of a message between stages: by how many stages its receiver is ahead of its sender
};

// The effect of a domain's uplinks (a leaf's, a part of the spine's, or a pod's) on a transfer.
struct UplinkUse {
  UplinkKind kind = UplinkKind::switches;
  double slowdown = 1;    // time of the transfer over its time without the uplinks
  double share = 0;       // share of the uplinks' rate that the transfer uses while it runs
  std::int64_t gpus = 0;  // number of GPUs below the uplinks
  std::size_t op = 0;     // index of the transfer's op in the plan
  Seconds added = 0;      // number of the op's tasks in the plan, times by how much one lasts longer
};

// The links above the nodes' NICs, level by level. A level divides the job's GPUs into domains: the GPUs of a leaf's
// nodes and of a part of the spine (cluster.network), and pods, which are sets of cluster.oversubscribed_above_gpus
// GPUs whose uplinks have 1/ratio of their NICs' bandwidth ("1:7 above 3,072 GPUs": Llama 3, section 3.3.1). All groups
// of a dimension transfer at the same time, so that a transfer lasts at least as long as the uplinks of the busiest
// domain need for the bytes that all these groups send out of it. NCCL orders rings and trees node by node: a group
// that spans several domains sends out of each of them the bytes that one node sends to its neighbours (a double tree
// of binary trees crosses a boundary four times with half the buffer, a ring once with twice the buffer). NCCL's
// PAT sends half of its bytes to the next node, a quarter to the second next, an eighth to the fourth next, and so on.
// In an all-to-all, every member inside a domain sends to every member outside. Where a hash chooses uplinks, the
// transfer lasts as long as its slowest flow, in the mean over hashes or for one draw of them (hash_draw.h). Between
// sites a transfer also waits for bits on their way: once for every trip, and where a connection's bytes on the way
// would be more than NCCL's buffer holds. The switch of a level with the fewest uplinks and the one with the most bytes
// are taken to be the same.
//
// All groups of a dragonfly send at the same time: what one sends to another goes over the links between the two,
// or, where routing is adaptive and this is faster, over other groups, on twice as many links (Valiant's routing; Kim
// et al. 2008, section 4). In a torus the busiest link counts (torus_routes.h). Where rails are not joined, what an
// all-to-all sends from one rail to another goes over NVLink first, and then over the NIC (Wang et al. 2023,
// arXiv:2307.12169).
//
// A job's nodes lie in the cluster as cluster.network.placement says. A node with slow NICs slows the transfers of all
// groups that leave a node: NCCL divides a group's bytes evenly over its NICs, and a step waits for its slowest group.
class Uplinks {
 public:
  // The pattern says between which ranks a group's transfer crosses a domain's boundary. neighbours: between two nodes
  // that follow each other in a ring or tree; pairs: between every member inside the domain and every member outside.
  enum class Pattern : std::uint8_t { neighbours, pairs };

  // node_gpus: number of GPUs that reach each other without a NIC. draw: of hashes, where these choose uplinks.
  Uplinks(const Plan& plan, const Cluster& cluster, std::int64_t node_gpus, HashDraw draw = {});

  // Returns the levels at which the path between two ranks, or the ring of a rank's group, leaves a domain: a bit for
  // each level of uplinks that may slow it.
  std::uint32_t crossed(std::int64_t from, std::int64_t to) const;
  std::uint32_t crossed(Dimension d, std::int64_t rank) const;
  // Returns the ranks whose NIC alone is slow, in order.
  std::vector<std::int64_t> ranks_at_slow_nics() const;
  // Returns for each class of ranks of the plan, for each dimension of parallelism, the levels that any group with
  // ranks of the class crosses: those of the slowest group, for which all others wait at the end of the step.
  std::vector<std::vector<int>> crossed_by_classes() const;
  // Returns the seconds that the busiest domain's uplinks need when all groups of a dimension make the same transfer at
  // the same time; 0 if no group spans more than one domain.
  Seconds least_time(Dimension d, Pattern pattern, const NodeTraffic& sent) const;
  // Returns the level whose uplinks need longest.
  std::uint8_t fullest(Dimension d, Pattern pattern, const NodeTraffic& sent) const;
  // Returns the seconds of a transfer that crosses a boundary, given its time without the uplinks: at least
  // least_time(), and longer where flows meet on hashed uplinks.
  // op: index of the transfer's op, for busiest().
  Seconds time(std::size_t op, Dimension d, Pattern pattern, const NodeTraffic& sent);
  // Returns, of all ops that time() was called for, what was done to the transfers of the one to which most time was
  // added, or that uses most of its uplinks if none is slowed.
  const UplinkUse& busiest() const { return busiest_; }
  // Returns the transfers that time() was called for whose uplinks a hash chooses, by the number of their connections.
  const std::map<std::uint64_t, HashedTransfers>& hashed() const { return hashed_; }
  // Number of NICs that work for a GPU as one, where there are several for each (the NICs of an NcclTopology).
  double nics_as_one() const { return nics_as_one_; }

 private:
  Seconds need(const UplinkLevel& level, Dimension d, Pattern pattern, const NodeTraffic& sent) const;
  // need() of a level that the transfer uses, 0 of another
  Seconds needed(std::size_t level, Dimension d, Pattern pattern, const NodeTraffic& sent) const;
  double doubled(const UplinkLevel& level, Dimension d) const;
  double hops_of(const UplinkLevel& level, std::size_t d, const NodeTraffic& sent) const;
  Seconds among_bursts(const UplinkLevel& level, Dimension d, Seconds evenly) const;
  Seconds forwarding(const UplinkLevel& level, const NodeTraffic& sent) const;
  Seconds waiting(const UplinkLevel& level, std::size_t d, Pattern pattern, const NodeTraffic& sent) const;
  Seconds hashed_time(std::size_t op, const UplinkLevel& level, std::size_t d, Pattern pattern,
                      const NodeTraffic& sent);

  const Plan& plan_;
  JobSeats seats_;
  double nics_as_one_ = 1;
  std::vector<UplinkLevel> levels_;
  std::uint32_t sites_ = 0;          // the levels that are a link between two sites of a list, a bit for each
  std::vector<std::int64_t> tasks_;  // for each op of the plan, the number of its tasks
  UplinkUse busiest_;
  HashDraw draw_;
  std::map<std::uint64_t, HashedTransfers> hashed_;
};

inline Uplinks::Pattern pattern_of(CollectiveKind kind) {
  return kind == CollectiveKind::all_to_all ? Uplinks::Pattern::pairs : Uplinks::Pattern::neighbours;
}

// Returns the cost of a transfer over uplinks which may be short or shared (Uplinks::time), with its share of their
// rate. op: index in the plan; topology: the group's; path: laps, trips and levels of the transfer.
NcclChoice over_uplinks(Uplinks& uplinks, std::size_t op, const NcclChoice& choice, Dimension d,
                        const NcclTopology& topology, Uplinks::Pattern pattern, const NodeTraffic& path);

// Returns what NodeTraffic says of a collective's laps and trips: a ring takes every byte around once, and in an
// all-reduce twice; a tree takes it up, and in an all-reduce down again.
NodeTraffic path_of(CollectiveKind kind, NcclAlgorithm algorithm);

}  // namespace orrery
