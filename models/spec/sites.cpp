#include "models/spec/sites.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery {
namespace {

// The best way known to a site: its time and number of links, and the last link.
struct Way {
  double ms = std::numeric_limits<double>::infinity();
  int links = 0;
  std::size_t last = 0;
};

bool is_shorter(double ms, int links, const Way& than) { return std::pair(ms, links) < std::pair(than.ms, than.links); }

// Goes over each link both ways and keeps what is shorter (Bellman-Ford).
std::vector<Way> ways_from(const Network& n, std::int64_t from) {
  std::vector<Way> ways(n.site_sizes.size());
  ways[static_cast<std::size_t>(from)] = {.ms = 0};
  for (std::size_t round = 0; round < ways.size(); ++round) {
    for (std::size_t l = 0; l < n.site_links.size(); ++l) {
      const SiteLink& link = n.site_links[l];
      for (const auto& [a, b] : {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
        const Way& begin = ways[static_cast<std::size_t>(a)];
        Way& end = ways[static_cast<std::size_t>(b)];
        if (is_shorter(begin.ms + link.ms, begin.links + 1, end)) end = {begin.ms + link.ms, begin.links + 1, l};
      }
    }
  }
  return ways;
}

}  // namespace

std::int64_t site_of(const Network& n, std::int64_t node) {
  if (n.site_sizes.empty()) return n.site_nodes > 0 ? node / n.site_nodes : 0;
  std::int64_t site = 0;
  for (std::int64_t first = n.site_sizes[0]; site + 1 < std::ssize(n.site_sizes) && node >= first;)
    first += n.site_sizes[static_cast<std::size_t>(++site)];
  return site;
}

std::vector<std::size_t> way_between_sites(const Network& n, std::int64_t from, std::int64_t to) {
  const std::vector<Way> ways = ways_from(n, from);
  std::vector<std::size_t> links;
  for (std::int64_t at = to; at != from;) {
    const Way& way = ways[static_cast<std::size_t>(at)];
    if (way.links == 0) return {};
    links.push_back(way.last);
    const SiteLink& link = n.site_links[way.last];
    at = link.from == at ? link.to : link.from;
  }
  std::reverse(links.begin(), links.end());
  return links;
}

}  // namespace orrery
