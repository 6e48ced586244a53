#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "models/base/units.h"
#include "models/plan/plan.h"
#include "sim/engine/fair_share.h"

namespace orrery {

// Ports are the resources that ranks of a node share beyond the network: the link to the host of the devices on one
// PCIe switch, in both directions; the host's processors and memory; the node's disks.
enum class Port : std::uint8_t { d2h, h2d, processors, host_memory, disk_read, disk_write };
inline constexpr std::size_t kPorts = 6;

// Times of one task of an op, and the load that it puts on shared links, when nothing else runs.
struct OpTiming {
  Picoseconds duration = 0;
  Picoseconds issue = 0;  // time that the host thread takes to launch it

  // For a transfer: how much longer compute of the same rank takes meanwhile, in 1/65536.
  std::uint32_t pressure = 0;
  // For a transfer: how much longer the transfer takes while its rank computes, in 1/65536.
  std::uint32_t yield = 0;
  // Share of the rank's memory bandwidth that the task uses while it runs, in 1/65536.
  std::uint32_t memory = 0;
  // For a transfer: share of its rank's NIC and NVLink that it uses at full speed.
  Rate nic = 0, nvlink = 0;
  bool out = true, in = true;        // directions of the NIC and NVLink that the transfer uses
  bool host = false;                 // whether the task loads any of the ports above
  std::array<Rate, kPorts> ports{};  // shares of the ports that the task uses at full speed
  // For a transfer: the group dimension (tensor, data, ...) whose ranks make it together.
  Dimension group = Dimension::pipeline;
};

// Links that the transfers of one class of ranks use: ids of Timing's links, one per direction; kNone where no other
// traffic can be on the link. A collective's share of a NIC covers all its members on that NIC, so they make one flow:
// flows[d] is the number of different groups of dimension d among the ranks of this class on the NIC. In a plan of all
// ranks (unfolded), the first member of each group carries the flow (1) and the others none (0).
struct SlotLinks {
  LinkId nic_out = kNone, nic_in = kNone, nvlink_out = kNone, nvlink_in = kNone;
  std::array<std::int64_t, kDimensions> flows{};
  // Links of the ports, kNone where no task of these ranks uses the port, and the number of these ranks on each port.
  std::array<LinkId, kPorts> port{kNone, kNone, kNone, kNone, kNone, kNone};
  std::array<std::int64_t, kPorts> on_port{};
};

// Durations of every op of a plan, and the links that its transfers share. Ranks whose groups lie differently on the
// machine (a stage whose tensor group leaves the node) have a row of times of their own.
struct Timing {
  std::vector<std::uint32_t> row_of_slot;
  std::vector<std::vector<OpTiming>> rows;  // times of every op, [row][op]
  std::vector<SlotLinks> links;             // links by class of ranks; empty: nothing is shared
  LinkId link_count = 0;
  bool one_queue = false;  // a rank's kernels begin in the order of their launches, whatever their lanes

  const OpTiming& of(std::uint32_t slot, std::uint32_t op) const { return rows[row_of_slot[slot]][op]; }
};

}  // namespace orrery
