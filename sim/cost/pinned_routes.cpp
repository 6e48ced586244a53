#include "sim/cost/pinned_routes.h"

#include <algorithm>

#include "models/base/units.h"

namespace orrery {

PinnedRoutes::PinnedRoutes(const Cluster& c, std::int64_t uplinks)
    : leaf_nodes_(c.network->leaf_nodes),
      uplinks_(uplinks),
      nics_(has_rails(c.network->kind) ? 1 : std::max(1, c.nics)),
      leaves_(ceil_div(static_cast<std::int64_t>(c.nodes), leaf_nodes_)),
      rates_(static_cast<std::size_t>(leaves_ * uplinks_), 1) {
  for (const LinkFault& f : c.network->faults) {
    if (f.link < 0 || f.link >= uplinks_) continue;
    double& rate = rates_[static_cast<std::size_t>(f.leaf * uplinks_ + f.link)];
    rate = std::min(rate, f.Gbps / c.network->leaf_Gbps);
  }
}

void PinnedRoutes::visit_links(std::int64_t from, std::int64_t to,
                               const std::function<void(std::int64_t, double)>& visit) const {
  if (leaf_of(from) == leaf_of(to)) return;
  const std::int64_t downlinks = leaf_nodes_ * nics_, first = leaf_of(from) * uplinks_;
  const double share = 1 / static_cast<double>(nics_);
  for (std::int64_t nic = 0; nic < nics_; ++nic) {
    const std::int64_t down = to % leaf_nodes_ * nics_ + nic;
    const std::int64_t beside = down < uplinks_ ? ceil_div(uplinks_ - down, downlinks) : 1;
    for (std::int64_t i = 0; i < beside; ++i)
      visit(first + (down + i * downlinks) % uplinks_, share / static_cast<double>(beside));
  }
}

}  // namespace orrery
