#include "sim/cost/site_links.h"

#include <algorithm>

#include "models/spec/sites.h"

namespace orrery {

SiteLinkUse::SiteLinkUse(const Network& network, std::size_t link)
    : network_(network), link_(link), sites_(std::ssize(network.site_sizes)) {
  for (std::int64_t from = 0; from < sites_; ++from) {
    for (std::int64_t to = 0; to < sites_; ++to) {
      std::int64_t at = from;
      int& way = ways_.emplace_back(0);
      for (const std::size_t l : way_between_sites(network, from, to)) {
        const SiteLink& passed = network.site_links[l];
        const bool onward = passed.from == at;
        if (l == link_) way = onward ? 1 : 2;
        at = onward ? passed.to : passed.from;
      }
    }
  }
}

std::int64_t SiteLinkUse::site_of(std::int64_t node) const { return orrery::site_of(network_, node); }

std::int64_t SiteLinkUse::nodes() const {
  const SiteLink& link = network_.site_links[link_];
  return std::min(network_.site_sizes[static_cast<std::size_t>(link.from)],
                  network_.site_sizes[static_cast<std::size_t>(link.to)]);
}

}  // namespace orrery
