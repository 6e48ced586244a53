#include "sim/predict/out_of_step.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "models/plan/unfold.h"

namespace orrery {
namespace {

// The group of a dimension that the representative of a class is in.
GroupList::Group group_of(const Plan& plan, Dimension d, const RankClass& c) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  return table.groups[table.member_of[c.representative]];
}

// The links of a folded class's ranks, for one of several copies of the class, each of which has links of its own.
SlotLinks own_links(SlotLinks links, LinkId first) {
  const auto rename = [&](LinkId& id) { id = id == kNone ? kNone : first + id; };
  for (LinkId* id : {&links.nic_out, &links.nic_in, &links.nvlink_out, &links.nvlink_in}) rename(*id);
  for (UplinkPair& pair : links.uplinks) {
    rename(pair.out);
    rename(pair.in);
  }
  for (LinkId& id : links.link_of_port) rename(id);
  return links;
}

// The ranks of every class at `count` evenly spaced places of its data-parallel group, place by place; none if several
// classes are of one stage, if the classes' groups differ in size, or if ranks at one place are not those of one
// pipeline.
std::vector<std::int64_t> spaced_ranks(const Plan& plan, std::size_t count) {
  const std::size_t size = group_of(plan, Dimension::data, plan.classes.front()).size();
  const auto pipeline_of = [&](std::int64_t rank) {
    return plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)].member_of[rank];
  };
  std::vector<std::int64_t> ranks;
  std::set<std::int64_t> stages;
  for (const RankClass& c : plan.classes) {
    if (!stages.insert(c.stage).second) return {};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = ranks.size();
    for (const RankClass& c : plan.classes) {
      const GroupList::Group group = group_of(plan, Dimension::data, c);
      if (group.size() != size) return {};
      ranks.push_back(group[i * size / count]);
      if (plan.classes.size() > 1 && pipeline_of(ranks.back()) != pipeline_of(ranks[first])) return {};
    }
  }
  return ranks;
}

}  // namespace

std::optional<OutOfStep> ranks_out_of_step(const Plan& plan, const Timing& timing, std::int64_t sets) {
  // Quantiles of 64 ranks are within half a percent of those of 256 ranks, quantiles of 16 within 2 % (measured by
  // benchmarks/step_quantiles on a small model). The engine takes a fifth of a second for two million tasks.
  constexpr std::int64_t kMost = 64, kLeast = 4, kTasks = 2'000'000;
  if (!plan.kind_of_rank.empty() || plan.servers > 0) return std::nullopt;
  const auto group = static_cast<std::int64_t>(group_of(plan, Dimension::data, plan.classes.front()).size());
  const std::int64_t count =
      std::min({std::clamp(kTasks / std::max<std::int64_t>(1, plan.task_count()), kLeast, kMost), group, sets});
  if (count < 2) return std::nullopt;
  const std::vector<std::int64_t> ranks = spaced_ranks(plan, static_cast<std::size_t>(count));
  if (ranks.empty()) return std::nullopt;
  OutOfStep some{unfold(plan, ranks), {}, {}, count};
  some.timing.rows = timing.rows;
  some.timing.one_queue = timing.one_queue;
  some.timing.link_count = timing.link_count * static_cast<LinkId>(count);
  const std::vector<std::uint32_t> slot_of = slots_of_ranks(plan);
  // The ranks of one pipeline are not all slow or all fast: from stage to stage their order is turned by a little more
  // than half a turn, so that it comes back after `count` stages.
  std::int64_t turn = count / 2 + 1;
  while (std::gcd(turn, count) > 1) ++turn;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::uint32_t slot = slot_of[ranks[i]];
    const auto place = static_cast<std::int64_t>(i / plan.classes.size());
    some.timing.row_of_slot.push_back(timing.row_of_slot[slot]);
    if (!timing.links.empty())
      some.timing.links.push_back(own_links(timing.links[slot], timing.link_count * static_cast<LinkId>(place)));
    some.places.push_back((place + plan.classes[slot].stage * turn) % count);
  }
  return some;
}

}  // namespace orrery
