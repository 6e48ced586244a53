#include "sim/cost/pinned_routes.h"

#include <algorithm>

#include "models/base/units.h"
#include "models/spec/network.h"

namespace orrery {

PinnedRoutes::PinnedRoutes(const Cluster& c)
    : leaf_nodes_(c.network->leaf_nodes),
      uplinks_(c.network->leaf_uplinks),
      nics_(has_rails(c.network->kind) ? 1 : std::max(1, c.nics)),
      rates_(static_cast<std::size_t>(ceil_div(static_cast<std::int64_t>(c.nodes), leaf_nodes_)),
             std::vector<double>(static_cast<std::size_t>(uplinks_), 1)) {
  for (const LinkFault& f : c.network->faults) {
    if (f.plane < 0 && f.leaf >= 0) rates_[static_cast<std::size_t>(f.leaf)] = uplink_rates(*c.network, f.leaf);
  }
}

void PinnedRoutes::visit_links(std::int64_t from, std::int64_t to,
                               const std::function<void(std::int64_t, double)>& visit) const {
  if (leaf_of(from) == leaf_of(to)) return;
  const std::int64_t downlinks = leaf_nodes_ * nics_, first = leaf_of(from) * uplinks_;
  const auto working = std::ssize(rates_[static_cast<std::size_t>(leaf_of(from))]);
  const double share = 1 / static_cast<double>(nics_);
  for (std::int64_t nic = 0; nic < nics_; ++nic) {
    const std::int64_t down = to % leaf_nodes_ * nics_ + nic;
    const std::int64_t beside = down < working ? ceil_div(working - down, downlinks) : 1;
    for (std::int64_t i = 0; i < beside; ++i)
      visit(first + (down + i * downlinks) % working, share / static_cast<double>(beside));
  }
}

}  // namespace orrery
