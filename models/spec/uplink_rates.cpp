#include "models/spec/uplink_rates.h"

#include <algorithm>
#include <numeric>

namespace orrery {

std::vector<double> uplink_rates(const Network& n, std::int64_t leaf) {
  std::int64_t links = n.leaf_uplinks;
  std::vector<double> rates(static_cast<std::size_t>(n.leaf_uplinks), 1);
  for (const LinkFault& f : n.faults) {
    if (f.plane >= 0 || f.leaf != leaf) continue;
    if (f.link < 0)
      links = std::min(links, f.uplinks);
    else
      rates[static_cast<std::size_t>(f.link)] = std::min(rates[static_cast<std::size_t>(f.link)], f.Gbps / n.leaf_Gbps);
  }
  std::erase(rates, 0);
  while (std::ssize(rates) > links)
    // The last one of those with the highest rate.
    rates.erase(std::prev(std::max_element(rates.rbegin(), rates.rend()).base()));
  return rates;
}

double working_uplinks(const Network& n, std::int64_t leaf) {
  const std::vector<double> rates = uplink_rates(n, leaf);
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

}  // namespace orrery
