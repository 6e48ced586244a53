#include "sim/cost/shared_links.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace orrery {
namespace {

// Identifies a NIC or port by the ranks that use it. In a folded plan (one rank of each class) it counts the ranks by
// stage or class, and NICs or ports with equal counts are one link. In an unfolded plan the only key is the index of
// the NIC or port.
using Mix = std::map<std::int64_t, std::int64_t>;

struct Lanes {
  // The lanes (streams) whose transfers use the NIC, each with the dimension of parallelism of its transfers.
  std::set<std::pair<std::uint32_t, Dimension>> nic;
  std::uint32_t nvlink = 0;                            // bit mask: a bit for each lane whose transfers use NVLink
  std::array<std::uint32_t, kUplinkLevels> uplinks{};  // the same for transfers that use each level of uplinks
  std::array<bool, kPorts> ports{};
};

Lanes lanes_of(const Plan& plan, const Timing& timing, std::uint32_t s) {
  Lanes lanes;
  std::vector<bool> seen(plan.ops.size(), false);
  for (TaskId t = plan.classes[s].begin; t < plan.classes[s].end; ++t) {
    if (seen[plan.tasks[t].op]) continue;
    seen[plan.tasks[t].op] = true;
    const OpTiming& op = timing.of(s, plan.tasks[t].op);
    const std::uint32_t lane = plan.tasks[t].lane % kLanes;
    if (op.nic > 0) lanes.nic.insert({lane, op.group});
    if (op.nvlink > 0) lanes.nvlink |= 1U << lane;
    if (op.uplink > 0) lanes.uplinks[op.uplink_level] |= 1U << lane;
    for (std::size_t p = 0; p < kPorts; ++p) lanes.ports[p] = lanes.ports[p] || op.ports[p] > 0;
  }
  return lanes;
}

class NicFinder {
 public:
  NicFinder(const Plan& plan, const Cluster& cluster)
      : plan_(plan),
        gpus_(cluster.gpus_per_node),
        nics_(std::clamp(cluster.nics, 1, cluster.gpus_per_node)),
        on_switch_(std::max(cluster.gpus_per_pcie_switch, 1)) {
    slot_of_ = slots_of_ranks(plan);
    for (const std::uint32_t slot : slot_of_) stage_of_.push_back(plan.classes[slot].stage);
  }

  std::int64_t nic_of(std::int64_t rank) const {
    const std::int64_t seat = plan_.seat_of(rank);
    return seat / gpus_ * nics_ + seat % gpus_ * nics_ / gpus_;
  }

  // Ranks on the same node as `rank`, in order: first workers, then parameter servers.
  std::vector<std::int64_t> ranks_on_node(std::int64_t rank) const {
    std::vector<std::int64_t> result;
    const std::int64_t node = plan_.seat_of(rank) / gpus_;
    for (std::int64_t r = node * gpus_; r < std::min((node + 1) * gpus_, plan_.workers()); ++r) result.push_back(r);
    for (std::int64_t r = plan_.workers(); r < plan_.ranks; ++r) {
      if (plan_.seat_of(r) / gpus_ == node) result.push_back(r);
    }
    return result;
  }

  // Ranks that use the same NIC as `rank`, in order.
  std::vector<std::int64_t> ranks_beside(std::int64_t rank) const {
    std::vector<std::int64_t> result = ranks_on_node(rank);
    std::erase_if(result, [&](std::int64_t r) { return nic_of(r) != nic_of(rank); });
    return result;
  }

  // Returns the index of the port (a link that ranks of a node share) that a rank uses. The PCIe link to the host has
  // one port for each PCIe switch; other ports exist once per node.
  std::int64_t port_of(std::int64_t rank, Port port) const {
    const bool link = port == Port::d2h || port == Port::h2d;
    const std::int64_t seat = plan_.seat_of(rank), node = seat / gpus_, at = seat % gpus_ / on_switch_;
    return link ? node * ceil_div(gpus_, on_switch_) + at : node;
  }
  Mix slots_at(std::int64_t rank, Port port) const {
    Mix result;
    for (const std::int64_t r : ranks_on_node(rank)) {
      if (port_of(r, port) == port_of(rank, port)) ++result[slot_of_[r]];
    }
    return result;
  }

  Mix mix(std::int64_t rank) const {
    Mix result;
    for (const std::int64_t r : ranks_beside(rank)) ++result[stage_of_[r]];
    return result;
  }

  // Returns, for each class of ranks, the number of its ranks on the same NIC as `rank`. Classes of one pipeline stage
  // are counted separately, since they may use different NICs.
  Mix slots(std::int64_t rank) const {
    Mix result;
    for (const std::int64_t r : ranks_beside(rank)) ++result[slot_of_[r]];
    return result;
  }

  // Counts the groups of one dimension of parallelism that have members among the ranks of one stage on one NIC.
  struct Groups {
    std::int64_t all = 0;  // number of the dimension's groups with members among the stage's ranks on the NIC
    // The number of groups whose first member on the NIC is of the same class of ranks as `rank`; a stage may have
    // several classes.
    std::int64_t own = 0;
    bool first = true;
  };
  Groups groups(std::int64_t rank, Dimension d) const {
    const std::vector<std::int32_t>& member_of = plan_.dimensions[static_cast<std::size_t>(d)].member_of;
    std::set<std::int32_t> found;
    Groups result;
    for (const std::int64_t r : ranks_beside(rank)) {
      if (stage_of_[r] != stage_of_[rank]) continue;
      if (r < rank && member_of[r] == member_of[rank]) result.first = false;
      if (!found.insert(member_of[r]).second) continue;
      ++result.all;
      result.own += slot_of_[r] == slot_of_[rank] ? 1 : 0;
    }
    return result;
  }

  // Returns whether more than one flow (the transfers of several lanes or ranks) can be on the NIC at the same time.
  bool contested(std::int64_t rank, const Lanes& lanes) const {
    const Mix users = mix(rank);
    std::int64_t flows = lanes.nic.empty() ? 0 : static_cast<std::int64_t>(users.size()) - 1;
    for (const auto& [lane, dimension] : lanes.nic) flows += groups(rank, dimension).all;
    return flows > 1;
  }

 private:
  const Plan& plan_;
  std::int64_t gpus_, nics_, on_switch_;
  std::vector<std::int64_t> stage_of_;
  std::vector<std::uint32_t> slot_of_;
};

// The link id of each port (a link that ranks of a node share), by port and by the ranks that it serves. In a folded
// plan (one rank of each class), ports that serve the same number of ranks of each class are one link.
using PortIds = std::map<std::pair<std::size_t, Mix>, LinkId>;

void find_ports(const NicFinder& nics, const Lanes& lanes, std::int64_t rank, bool folded, PortIds& ids,
                LinkId& link_count, SlotLinks& links, std::uint32_t slot) {
  for (std::size_t p = 0; p < kPorts; ++p) {
    if (!lanes.ports[p]) continue;
    const auto port = static_cast<Port>(p);
    const Mix mix = nics.slots_at(rank, port);
    const Mix key = folded ? mix : Mix{{nics.port_of(rank, port), 0}};
    const auto [it, fresh] = ids.try_emplace({p, key}, link_count);
    if (fresh) ++link_count;
    links.link_of_port[p] = it->second;
    links.ranks_on_port[p] = folded ? mix.at(slot) : 1;
  }
}

}  // namespace

void find_shared_links(const Plan& plan, const Cluster& cluster, Timing& timing) {
  const NicFinder nics(plan, cluster);
  const bool folded = static_cast<std::int64_t>(plan.classes.size()) < plan.ranks;
  std::map<Mix, LinkId> ids;
  PortIds ports;
  timing.links.assign(plan.classes.size(), {});
  for (std::uint32_t s = 0; s < plan.classes.size(); ++s) {
    const std::int64_t rank = plan.classes[s].representative;
    const Lanes lanes = lanes_of(plan, timing, s);
    SlotLinks& links = timing.links[s];
    if (nics.contested(rank, lanes)) {
      const Mix key = folded ? nics.slots(rank) : Mix{{nics.nic_of(rank), 0}};
      const auto [it, fresh] = ids.try_emplace(key, timing.link_count);
      if (fresh) timing.link_count += 2;
      links.nic_out = it->second;
      links.nic_in = it->second + 1;
      for (std::size_t d = 0; d < kDimensions; ++d) {
        const NicFinder::Groups found = nics.groups(rank, static_cast<Dimension>(d));
        links.flows[d] = folded ? found.own : (found.first ? 1 : 0);
      }
    }
    find_ports(nics, lanes, rank, folded, ports, timing.link_count, links, s);
    if (std::popcount(lanes.nvlink) > 1) {
      links.nvlink_out = timing.link_count++;
      links.nvlink_in = timing.link_count++;
    }
    for (std::size_t level = 0; level < kUplinkLevels; ++level) {
      if (std::popcount(lanes.uplinks[level]) < 2) continue;
      links.uplinks[level].out = timing.link_count++;
      links.uplinks[level].in = timing.link_count++;
    }
  }
  if (timing.link_count == 0) timing.links.clear();
}

}  // namespace orrery
