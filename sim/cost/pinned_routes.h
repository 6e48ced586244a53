#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "models/spec/cluster.h"

namespace orrery {

// The uplinks of leaves that pinned flows take (Routing::pinned): a NIC's bytes for another leaf go over the uplink
// whose number is that of the downlink on which the destination hangs on its own leaf. A leaf with more uplinks than
// downlinks has several for each, which are used evenly; one with fewer numbers them anew from 0. A leaf some of whose
// uplinks are down numbers those that work. NICs of one number
// send to each other; with rails the leaves of all rails are alike, and one of them stands for all. A job that has all
// nodes of its leaves uses all of their uplinks alike; one that has some nodes may send to the same downlinks of
// several leaves, and then over one uplink (Gangidi et al. 2024, "RDMA over Ethernet for distributed AI training at
// Meta scale", section 4).
class PinnedRoutes {
 public:
  explicit PinnedRoutes(const Cluster& cluster);

  std::int64_t link_count() const { return std::ssize(rates_) * uplinks_; }
  std::int64_t leaf_of(std::int64_t node) const { return node / leaf_nodes_; }
  std::int64_t first_of_leaf(std::int64_t node) const { return node / leaf_nodes_ * leaf_nodes_; }
  // the rate of a link over that of an uplink without a fault
  double share_of_rate(std::int64_t link) const {
    return rates_[static_cast<std::size_t>(link / uplinks_)][static_cast<std::size_t>(link % uplinks_)];
  }
  // Calls visit(link, share) for every uplink that what a node sends to a node of another leaf takes, with the share of
  // the leaf's bytes: of all rails together.
  void visit_links(std::int64_t from, std::int64_t to, const std::function<void(std::int64_t, double)>& visit) const;

 private:
  std::int64_t leaf_nodes_, uplinks_, nics_;  // nics_: of a node on one leaf
  std::vector<std::vector<double>> rates_;    // of each leaf's uplinks that work, over that of one without a fault
};

}  // namespace orrery
