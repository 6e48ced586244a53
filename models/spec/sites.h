#pragma once

#include <cstdint>
#include <vector>

#include "models/spec/network.h"

namespace orrery {

// The most sites, and the most links between pairs of them, that a network may list.
inline constexpr std::int64_t kMostSites = 8, kMostSiteLinks = 8;

inline bool has_sites(const Network& network) { return network.site_nodes > 0 || !network.site_sizes.empty(); }

// Returns the number of the site of a node, 0 if there are none; nodes beyond the last site count as of this one.
std::int64_t site_of(const Network& network, std::int64_t node);

// Returns the indices of the links (Network::site_links) from one site to another, in their order, on the way with the
// least time, and of such ways with the fewest links; none if there is no way, or both are the same site.
std::vector<std::size_t> way_between_sites(const Network& network, std::int64_t from, std::int64_t to);

}  // namespace orrery
