#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "sim/engine/rate.h"

namespace orrery {

// Ports are links and resources that ranks of a node share besides NICs and NVLink: the link between the devices on one
// PCIe switch and the host, one port per direction (d2h, h2d); the host's processors; the host's memory; and, from
// first_store on, two ports for each memory tier behind the host (the node's disks), one for reads and one for writes.
enum class Port : std::uint8_t { d2h, h2d, processors, host_memory, first_store };
inline constexpr std::size_t kPorts = static_cast<std::size_t>(Port::first_store) + 2 * kTiersBehindHost;
constexpr Port read_port(MemoryTier tier) {
  return static_cast<Port>(static_cast<std::size_t>(Port::first_store) + 2 * index_behind_host(tier));
}
constexpr Port write_port(MemoryTier tier) { return static_cast<Port>(static_cast<std::size_t>(read_port(tier)) + 1); }

// The times of one task of an op when nothing else runs, and the load that the task puts on links that ranks share.
struct OpTiming {
  Picoseconds duration = 0;
  Picoseconds issue = 0;  // time that the host thread takes to launch the op

  // The slow-down that a transfer causes to compute of the same rank while it runs, in 1/65536 of the time that compute
  // takes alone.
  std::uint32_t pressure = 0;
  // The slow-down of a transfer while its rank computes, in 1/65536 of the time that the transfer takes alone.
  std::uint32_t yield = 0;
  // Share of the rank's memory bandwidth that the task uses while it runs, in 1/65536.
  std::uint32_t memory = 0;
  // The shares of its rank's NIC and NVLink bandwidth that a transfer uses at full speed.
  Rate nic = 0, nvlink = 0;
  // The share of the uplinks' rate (of leaf switches, pods and sites) that all groups of a transfer's kind, which run
  // at the same time, use together at full speed, on the level of uplinks where it is largest.
  Rate uplink = 0;
  std::uint8_t uplink_level = 0;
  bool out = true, in = true;        // whether a transfer uses NIC and NVLink to send (out) and to receive (in)
  bool host = false;                 // whether the task uses a port, such as the PCIe link to the host
  std::array<Rate, kPorts> ports{};  // for each port, the share of its bandwidth that the task uses at full speed
  // The dimension of parallelism (tensor, data, ...) within whose groups a transfer moves data.
  Dimension group = Dimension::pipeline;
};

constexpr std::array<LinkId, kPorts> all_ports(LinkId link) {
  std::array<LinkId, kPorts> ports{};
  ports.fill(link);
  return ports;
}

// The largest number of levels of uplinks that may be full: pods, leaves, their pinned uplinks, parts of the spine (at
// most 4 levels), groups of a dragonfly, a torus, ways to other rails, links between sites (at most 8), slow NICs.
inline constexpr std::size_t kUplinkLevels = 20;
struct UplinkPair {
  LinkId out = kNone, in = kNone;
};

// The links that the transfers of one class of ranks use, as link ids of Timing, one per direction; kNone if no other
// traffic can be on the link. The members of a collective that share a NIC make one flow on it, for which OpTiming::nic
// holds their common load. flows[d]: number of different groups of dimension d among the ranks of this class on one
// NIC. In a plan of all ranks (unfolded), flows[d] is 1 for the first member of a group on the NIC, which carries the
// flow, and 0 for the other members.
struct SlotLinks {
  LinkId nic_out = kNone, nic_in = kNone, nvlink_out = kNone, nvlink_in = kNone;
  // The uplinks of the switches above the class's ranks, for which its own transfers compete, level by level; transfers
  // of other pipeline stages at the same uplinks are left out.
  std::array<UplinkPair, kUplinkLevels> uplinks{};
  std::array<std::int64_t, kDimensions> flows{};
  // link_of_port: the link id of each port (a link that ranks of a node share), kNone if no task of this class of ranks
  // uses the port; ranks_on_port: number of ranks of this class on each port.
  std::array<LinkId, kPorts> link_of_port = all_ports(kNone);
  std::array<std::int64_t, kPorts> ranks_on_port{};
};

// The time of every op of a plan, and the links that transfers share. Classes of ranks whose groups lie on nodes in the
// same way share a row of times: a stage whose tensor group spans two nodes has another row than a stage whose tensor
// group is on one node.
struct Timing {
  // for each class of ranks, the index in `rows` of its times of ops
  std::vector<std::uint32_t> row_of_slot;
  // times of ops, indexed by row (one for all classes of ranks with equal times), then by op of the plan
  std::vector<std::vector<OpTiming>> rows;
  std::vector<SlotLinks> links;  // the links of each class of ranks; empty if no links are shared
  LinkId link_count = 0;
  bool one_queue = false;  // whether a rank's kernels begin in the order of their launches, whatever their lanes

  const OpTiming& of(std::uint32_t slot, std::uint32_t op) const { return rows[row_of_slot[slot]][op]; }
};

}  // namespace orrery
