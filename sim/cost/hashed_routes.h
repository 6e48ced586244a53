#pragma once

#include <cstdint>
#include <vector>

namespace orrery {

// Flows that switches send over equal uplinks, chosen by a hash (equal-cost multi-path routing, ECMP): each of
// `switches` switches sends `flows` flows over `uplinks` uplinks, and every flow is divided evenly among `queue_pairs`
// queue pairs, to each of which the hash assigns an uplink of its own accord. `faulty` of the switches have `fewest`
// uplinks that work, one of which has a rate of `slowest` over that of all others.
struct HashedFlows {
  std::int64_t flows = 1;
  std::int64_t uplinks = 1;
  std::int64_t queue_pairs = 1;
  std::int64_t switches = 1;
  std::int64_t faulty = 0, fewest = 0;
  double slowest = 1;
};

// The probability that the fullest uplink of all switches carries `queue_pairs` queue pairs.
struct LargestLoad {
  std::int64_t queue_pairs = 0;
  double probability = 0;
};

// Returns the distribution of the largest number of queue pairs on one uplink; probabilities below 1e-9 in sum are left
// out. All switches are alike here (no `faulty` ones). The distribution is exact up to 256 queue pairs of a switch.
// Above, the numbers of different uplinks are taken to be independent, which moves the mean of the rate of the slowest
// flow by less than 2 %.
const std::vector<LargestLoad>& largest_loads(const HashedFlows& flows);

// A factor by which hashing lengthens a transfer, and its probability.
struct HashedSlowdown {
  double factor = 1, probability = 0;
};

// Returns the factors, rising, for a transfer that lasts as long as its slowest flow: a flow alone on an uplink would
// use `demand` of the uplink's rate, and all queue pairs on an uplink share it evenly. The number of queue pairs on a
// slow uplink is taken to be independent of the largest number.
std::vector<HashedSlowdown> slowdowns(const HashedFlows& flows, double demand);
// Returns their mean.
double mean_slowdown(const HashedFlows& flows, double demand);
// Returns the factor that a share (0 to 1) of all hashes does not exceed.
double slowdown_at(const std::vector<HashedSlowdown>& slowdowns, double share);
double slowdown_at(const HashedFlows& flows, double demand, double share);

}  // namespace orrery
