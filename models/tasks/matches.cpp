#include "models/tasks/matches.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

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

// The collectives of one dimension and lane of one process group: for each slot with a member in the group, its tasks
// of them in the order of issue. The n-th tasks of all slots are one collective.
using Sequences = std::vector<std::vector<TaskId>>;

// A sequence of collectives is named by dimension, lane, process group, and the kind of ranks in dimensions whose
// groups contain ranks of one kind.
using SequenceKey = std::tuple<Dimension, LaneKind, std::int32_t, int>;

// Adds the collectives that a slot issues in the dimensions `shared` to the sequences of their groups.
static void add_collectives(const Plan& plan, const RankClass& slot, const std::vector<Dimension>& shared,
                            std::map<SequenceKey, Sequences>& all) {
  std::vector<std::vector<TaskId>> own(kDimensions * kLanes);
  for (TaskId t = slot.begin; t < slot.end; ++t) {
    const Op& op = plan.op_of(t);
    const auto* c = std::get_if<Collective>(&op.work);
    if (c == nullptr || std::find(shared.begin(), shared.end(), c->group) == shared.end()) continue;
    own[static_cast<std::size_t>(c->group) * kLanes + static_cast<std::size_t>(op.lane)].push_back(t);
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (own[i].empty()) continue;
    const auto dimension = static_cast<Dimension>(i / kLanes);
    const std::int32_t group = plan.dimensions[i / kLanes].member_of[slot.representative];
    const int apart = plan.meet(dimension) ? 0 : plan.kind_of(slot.representative);
    all[{dimension, static_cast<LaneKind>(i % kLanes), group, apart}].push_back(std::move(own[i]));
  }
}

static void add_match(Plan& plan, std::span<const TaskId> members) {
  if (members.size() < 2) return;
  for (const TaskId t : members) plan.tasks[t].match = static_cast<std::uint32_t>(plan.matches.size());
  plan.matches.push_back(
      {static_cast<std::uint32_t>(plan.match_members.size()), static_cast<std::uint32_t>(members.size())});
  plan.match_members.insert(plan.match_members.end(), members.begin(), members.end());
}

static void add_transfers(Plan& plan, std::vector<TransferEnds::End> ends) {
  std::ranges::stable_sort(ends, {}, &TransferEnds::End::transfer);
  std::vector<TaskId> members;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    members.push_back(ends[i].task);
    if (i + 1 < ends.size() && ends[i + 1].transfer == ends[i].transfer) continue;
    add_match(plan, members);
    members.clear();
  }
}

// Joins into one match the sender and the receiver of each transfer, and the members of each collective on several
// slots (classes of ranks). Different kinds of ranks (ranks with different work on one stage) take part in the same
// collectives only in the dimensions of Plan::meeting.
void link_matches(Plan& plan, const TransferEnds& ends) {
  add_transfers(plan, ends.transfers);
  add_transfers(plan, ends.evicted);
  const std::vector<Dimension> shared = dimensions_over_slots(plan);
  std::map<SequenceKey, Sequences> collectives;
  for (const RankClass& slot : plan.classes) add_collectives(plan, slot, shared, collectives);
  std::vector<TaskId> members;
  for (const auto& [key, slots] : collectives) {
    std::size_t most = 0;
    for (const auto& tasks : slots) most = std::max(most, tasks.size());
    for (std::size_t n = 0; n < most; ++n) {
      members.clear();
      for (const auto& tasks : slots) {
        if (n < tasks.size()) members.push_back(tasks[n]);
      }
      add_match(plan, members);
    }
  }
}

}  // namespace orrery
