#include "sim/report/link_side.h"

#include <fmt/format.h>

#include "models/cost/nccl/model.h"

namespace orrery {
namespace {

std::string name_of(const UplinkLevel& level) {
  switch (level.kind) {
    case UplinkKind::sites:
      return "links between sites";
    case UplinkKind::incast:
      return "NICs of many senders";
    case UplinkKind::slow_nics:
      return "slowest NICs";
    case UplinkKind::groups:
      return fmt::format("links of {} GPUs", level.gpus);
    case UplinkKind::torus:
      return "link of the torus";
    case UplinkKind::graph:
      return "link between switches";
    case UplinkKind::rail_change:
      return "NVLink to other rails";
    case UplinkKind::ports:
      return "ports of NICs";
    case UplinkKind::pinned:
      return "pinned uplinks";
    case UplinkKind::hops:
      return "switches above leaves";
    case UplinkKind::switches:
      break;
  }
  return fmt::format("uplinks of {} GPUs", level.gpus);
}

// Returns the bytes per second of a level in one direction. The levels of groups and of rails have several limits, of
// which any may be the one that a share is of.
double capacity_of(const UplinkLevel& level) {
  const bool several = level.kind == UplinkKind::groups || level.kind == UplinkKind::rail_change ||
                       level.kind == UplinkKind::ports || level.kind == UplinkKind::graph ||
                       level.kind == UplinkKind::pinned || level.kind == UplinkKind::hops;
  return several ? 0 : level.capacity;
}

}  // namespace

LinkNames::LinkNames(const Plan& plan, const Cluster& cluster, bool uplinks)
    : plan_(plan),
      cluster_(cluster),
      node_(nccl_node_gpus(cluster)),
      seats_(plan, cluster_, node_),
      levels_(uplinks ? uplink_levels(plan, cluster_, seats_) : std::vector<UplinkLevel>{}) {}

std::string LinkNames::name(const LinkSide& link) const {
  if (link.kind == LinkKind::nic) return "NIC";
  return link.kind == LinkKind::nvlink ? "NVLink" : name_of(levels_.at(link.level));
}

std::string LinkNames::of(const LinkSide& link, std::uint32_t slot) const {
  const std::string side = plan_.classes[slot].name + (link.in ? ", receiving" : ", sending");
  if (link.kind != LinkKind::uplink) return side;
  const UplinkLevel& level = levels_.at(link.level);
  if (level.kind != UplinkKind::switches && level.kind != UplinkKind::groups) return side;
  const std::int64_t first = seats_.domain_of(level.gpus, plan_.classes[slot].representative) * level.gpus;
  return fmt::format("GPUs {} to {}, {}", first, first + level.gpus - 1, side);
}

double LinkNames::capacity(const LinkSide& link) const {
  if (link.kind == LinkKind::nic) return nccl_topology(cluster_, 2, static_cast<int>(node_)).nic_GBps * 1e9;
  return link.kind == LinkKind::nvlink ? nccl_nvlink_GBps(cluster_) * 1e9 : capacity_of(levels_.at(link.level));
}

}  // namespace orrery
