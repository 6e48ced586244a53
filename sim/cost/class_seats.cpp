#include "sim/cost/class_seats.h"

#include <algorithm>

namespace orrery {

ClassSeats::ClassSeats(const Plan& plan, const Uplinks& uplinks, std::int64_t node_gpus)
    : plan_(plan), uplinks_(uplinks), node_gpus_(node_gpus), slow_ranks_(uplinks.ranks_at_slow_nics()) {
  if (!slow_ranks_.empty()) slots_ = slots_of_ranks(plan);
}

Spread ClassSeats::spread(const GroupTable& table, std::int64_t rank) const {
  Spread result;
  std::int64_t last = -1;
  for (const std::int32_t r : table.groups[table.member_of[rank]]) {  // the members of a node come one after another
    const std::int64_t node = node_of(r);
    if (node != last) result.push_back(0);
    ++result.back();
    last = node;
  }
  return result;
}

bool ClassSeats::is_near(std::uint32_t s, std::int64_t offset) const {
  const std::int64_t rank = plan_.classes[s].representative;
  return node_of(rank) == node_of(rank_beside(rank, offset));
}

std::uint32_t ClassSeats::crossed(std::uint32_t s, std::int64_t offset) const {
  const auto levels_of = [&](std::int64_t r) { return uplinks_.crossed(r, rank_beside(r, offset)); };
  std::uint32_t levels = levels_of(plan_.classes[s].representative);
  for (const std::int64_t slow : slow_ranks_) {  // the class waits for its rank that sends from a slow NIC or to one
    for (const std::int64_t r : {slow, rank_beside(slow, -offset)}) levels |= slots_[r] == s ? levels_of(r) : 0;
  }
  return levels;
}

std::int64_t ClassSeats::rank_beside(std::int64_t rank, std::int64_t offset) const {
  const GroupTable& pipeline = plan_.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
  const auto& group = pipeline.groups[pipeline.member_of[rank]];
  const auto at = std::find(group.begin(), group.end(), rank) - group.begin();
  return group[(at + offset + std::ssize(group)) % std::ssize(group)];
}

}  // namespace orrery
