#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "sim/cost/uplinks.h"

namespace orrery {

// How many members of a group each node has: {8, 8} for 16 members on two nodes.
using Spread = std::vector<int>;

// On which nodes and in which domains of the network the ranks of a plan's classes, their groups and the stages beside
// them are.
class ClassSeats {
 public:
  // node_gpus: number of GPUs that reach each other without a NIC. Plan and uplinks must outlive this object.
  ClassSeats(const Plan& plan, const Uplinks& uplinks, std::int64_t node_gpus);

  Spread spread(const GroupTable& table, std::int64_t rank) const;  // of the group that a rank is in
  // Returns whether class s is on the node of the stage to which it sends, `offset` stages further modulo their number.
  bool is_near(std::uint32_t s, std::int64_t offset) const;
  // Returns the levels of uplinks (Uplinks::crossed) on the way to that stage.
  std::uint32_t crossed(std::uint32_t s, std::int64_t offset) const;

 private:
  std::int64_t node_of(std::int64_t rank) const { return plan_.seat_of(rank) / node_gpus_; }
  std::int64_t rank_beside(std::int64_t rank, std::int64_t offset) const;

  const Plan& plan_;
  const Uplinks& uplinks_;
  std::int64_t node_gpus_;
  std::vector<std::int64_t> slow_ranks_;  // those whose NIC alone is slow
  std::vector<std::uint32_t> slots_;      // the class of each rank, if there are such ranks
};

}  // namespace orrery
