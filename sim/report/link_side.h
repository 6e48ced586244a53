#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/cluster.h"
#include "sim/cost/uplink_levels.h"
#include "sim/engine/timing.h"

namespace orrery {

enum class LinkKind : std::uint8_t { nic, nvlink, uplink };

// One direction of one link. level: of uplinks; id: that of the link that classes of ranks share, or one of the class's
// own.
struct LinkSide {
  LinkKind kind = LinkKind::nic;
  std::uint8_t level = 0;
  std::uint64_t id = 0;
  bool in = false;
  auto operator<=>(const LinkSide&) const = default;
};

// Calls function(link, rate) for each link that an op of a class of ranks uses, with the share of the link's rate that
// it takes while it runs alone, in units of 1 / kFullRate.
template <class Function>
void for_each_link(const Timing& timing, std::uint32_t slot, const OpTiming& t, const Function& function) {
  static const SlotLinks kNoLinks;
  const SlotLinks& links = timing.links.empty() ? kNoLinks : timing.links[slot];
  const auto use = [&](LinkKind kind, std::uint8_t level, LinkId out, LinkId in, std::int64_t rate) {
    const std::uint64_t own = std::uint64_t{slot} + (std::uint64_t{1} << 32);
    if (rate > 0 && t.out) function(LinkSide{kind, level, out == kNone ? own : out, false}, rate);
    if (rate > 0 && t.in) function(LinkSide{kind, level, in == kNone ? own : in, true}, rate);
  };
  const std::int64_t flows = links.nic_out == kNone ? 1 : links.flows[static_cast<std::size_t>(t.group)];
  use(LinkKind::nic, 0, links.nic_out, links.nic_in, t.nic * flows);
  use(LinkKind::nvlink, 0, links.nvlink_out, links.nvlink_in, t.nvlink);
  const UplinkPair& above = links.uplinks[t.uplink_level];
  use(LinkKind::uplink, t.uplink_level, above.out, above.in, t.uplink);
}

// The words for links. The plan must outlive this object.
class LinkNames {
 public:
  // uplinks: whether there are uplinks to name.
  LinkNames(const Plan& plan, const Cluster& cluster, bool uplinks);

  // Returns the kind of link: "NIC", "NVLink", "uplinks of 256 GPUs".
  std::string name(const LinkSide& link) const;
  // Returns which link of the kind it is, by a class of ranks that uses it: "stage 0, sending", and of a switch's
  // uplinks the GPUs below it where the class's first rank is: "GPUs 256 to 511, stage 0, sending".
  std::string of(const LinkSide& link, std::uint32_t slot) const;
  // Returns its bytes per second in one direction; 0: not known.
  double capacity(const LinkSide& link) const;

 private:
  const Plan& plan_;
  Cluster cluster_;
  std::int64_t node_ = 0;
  JobSeats seats_;
  std::vector<UplinkLevel> levels_;
};

}  // namespace orrery
