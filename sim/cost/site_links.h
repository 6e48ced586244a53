#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/network.h"

namespace orrery {

// One link between two sites of a list (Network::site_links), and between which sites it lies on the way.
class SiteLinkUse {
 public:
  // The network must outlive this object.
  SiteLinkUse(const Network& network, std::size_t link);

  std::int64_t site_of(std::int64_t node) const;
  // Returns whether what goes from one site to another takes the link: 0 no, 1 from its first to its second site, 2
  // back.
  int way(std::int64_t from, std::int64_t to) const { return ways_[static_cast<std::size_t>(from * sites_ + to)]; }
  // the number of nodes of the smaller one of the link's two sites
  std::int64_t nodes() const;

 private:
  const Network& network_;
  std::size_t link_;
  std::int64_t sites_;
  std::vector<int> ways_;
};

}  // namespace orrery
