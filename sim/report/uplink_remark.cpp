#include "sim/report/uplink_remark.h"

#include <fmt/format.h>

namespace orrery {
namespace {

std::string text_of(const UplinkUse& use) {
  switch (use.kind) {
    case UplinkKind::sites:
      return fmt::format("between sites of {} GPUs, whose links are {:.0f} % full", use.gpus, 100 * use.share);
    case UplinkKind::slow_nics:
      return fmt::format("over the slowest NICs on its way, {:.0f} % full", 100 * use.share);
    case UplinkKind::incast:
      return "into NICs to which too many ranks send at once";
    case UplinkKind::groups:
      return fmt::format("between groups of {} GPUs, whose links are {:.0f} % full", use.gpus, 100 * use.share);
    case UplinkKind::torus:
      return fmt::format("over the torus, whose busiest link is {:.0f} % full", 100 * use.share);
    case UplinkKind::graph:
      return fmt::format("over the switches, whose busiest link is {:.0f} % full", 100 * use.share);
    case UplinkKind::rail_change:
      return "through NVLink to the NICs of other rails";
    case UplinkKind::ports:
      return "over the ports of NICs, of which hashes use one more than others";
    case UplinkKind::pinned:
      return fmt::format("over uplinks to which flows are pinned, the busiest {:.0f} % full", 100 * use.share);
    case UplinkKind::hops:
      return "through the switches above the leaves";
    case UplinkKind::switches:
      break;
  }
  return fmt::format("over the uplinks of {} GPUs, {:.0f} % full", use.gpus, 100 * use.share);
}

// Returns whether the text of a kind tells how full its links are.
bool tells_share(UplinkKind kind) {
  return kind != UplinkKind::rail_change && kind != UplinkKind::ports && kind != UplinkKind::incast &&
         kind != UplinkKind::hops;
}

// Returns how much longer a transfer over full links takes: "takes 1.5 times as long"; where it is less than 5 %, only
// that it runs over them.
std::string slowing_text(const UplinkUse& use) {
  constexpr double kNoticed = 1.05;
  if (use.slowdown >= kNoticed) return fmt::format("takes {:.3g} times as long", use.slowdown);
  return tells_share(use.kind) ? "runs" : fmt::format("takes {:.0f} % longer", 100 * (use.slowdown - 1));
}

}  // namespace

std::string uplink_remark(const UplinkUse& use) {
  constexpr double kFull = 0.8, kSlow = 1.01;
  if ((use.share <= kFull || !tells_share(use.kind)) && use.slowdown <= kSlow) return "";
  return slowing_text(use) + ' ' + text_of(use);
}

}  // namespace orrery
