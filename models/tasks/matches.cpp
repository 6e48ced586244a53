#include "models/tasks/matches.h"

#include <algorithm>
#include <set>
#include <variant>

namespace orrery {

// Returns the dimensions (kinds of process groups) whose groups have members in several slots (classes of ranks).
static std::vector<Dimension> dimensions_over_slots(const Plan& plan) {
  std::vector<Dimension> result;
  for (std::size_t d = 0; d < kDimensions; ++d) {
    std::set<std::int32_t> groups;
    for (const RankClass& slot : plan.classes) groups.insert(plan.dimensions[d].member_of[slot.representative]);
    if (groups.size() < plan.classes.size()) result.push_back(static_cast<Dimension>(d));
  }
  return result;
}

// Joins into one match the sender and the receiver of each transfer, and the members of each collective on several
// slots (classes of ranks). Different kinds of ranks (ranks with different work on one stage) take part in the same
// collectives only in the dimensions of Plan::meeting.
void link_matches(Plan& plan, const TransferEnds& ends) {
  const auto add = [&](const std::vector<TaskId>& members) {
    if (members.size() < 2) return;
    for (const TaskId t : members) plan.tasks[t].match = static_cast<std::uint32_t>(plan.matches.size());
    plan.matches.push_back(
        {static_cast<std::uint32_t>(plan.match_members.size()), static_cast<std::uint32_t>(members.size())});
    plan.match_members.insert(plan.match_members.end(), members.begin(), members.end());
  };
  for (const auto& [key, members] : ends.transfers) add(members);
  for (const auto& [key, members] : ends.evicted) add(members);
  // Collectives with members in several slots (classes of ranks) are found by their order: for each dimension of
  // parallelism and lane, the n-th collective that one slot of a group issues is the same collective as the n-th that
  // each other slot of the group issues.
  const std::vector<Dimension> shared = dimensions_over_slots(plan);
  std::map<std::tuple<Dimension, LaneKind, std::int32_t, int, std::int64_t>, std::vector<TaskId>> collectives;
  for (const RankClass& slot : plan.classes) {
    std::map<std::pair<Dimension, LaneKind>, std::int64_t> count;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Op& op = plan.op_of(t);
      const auto* c = std::get_if<Collective>(&op.work);
      if (c == nullptr || std::find(shared.begin(), shared.end(), c->group) == shared.end()) continue;
      const GroupTable& table = plan.dimensions[static_cast<std::size_t>(c->group)];
      const int apart = plan.meet(c->group) ? 0 : plan.kind_of(slot.representative);
      collectives[{c->group, op.lane, table.member_of[slot.representative], apart, count[{c->group, op.lane}]++}]
          .push_back(t);
    }
  }
  for (const auto& [key, members] : collectives) add(members);
}

}  // namespace orrery
