#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "models/base/random.h"
#include "models/base/units.h"
#include "models/spec/cluster.h"
#include "sim/cost/hashed_routes.h"

namespace orrery {

// A draw of the hash that assigns uplinks to queue pairs. A connection keeps its addresses and ports, and so its hash,
// for a whole job: all transfers over one set of connections meet the same collisions, and those over different sets
// meet independent ones. A set is all connections of one dimension's groups at one level of uplinks; it has a number
// (Uplinks::hashed). For a set a draw says which share (0 to 1) of all hashes are at most as unlucky.
struct HashDraw {
  std::optional<std::int64_t> seed;        // what draws the share of every set; none: sets take their mean over hashes
  std::map<std::uint64_t, double> shares;  // the shares of sets that the seed does not draw

  // Returns the share of a set, or none if it takes the mean.
  std::optional<double> share_of(std::uint64_t set) const {
    if (const auto given = shares.find(set); given != shares.end()) return given->second;
    return seed ? std::optional(uniform(static_cast<std::uint64_t>(*seed), set)) : std::nullopt;
  }
};

// The transfers over one set of connections: the flows of the one that takes most time over all its tasks, which is
// `time` without collisions, and the share of an uplink's rate that one of its flows alone would use.
struct HashedTransfers {
  HashedFlows flows;
  double demand = 0;
  Seconds time = 0;

  std::vector<HashedSlowdown> slowdowns() const { return orrery::slowdowns(flows, demand); }
};

// Returns the draw that cluster.network.routing.seed asks for.
inline HashDraw draw_of(const Cluster& cluster) {
  return {.seed = cluster.network ? cluster.network->hash_seed : std::nullopt, .shares = {}};
}

}  // namespace orrery
