#include "sim/shared_links.h"

#include <algorithm>
#include <bit>
#include <map>

namespace orrery {
namespace {

// A NIC's port as its users see it: for a folded plan the mix of classes, for an unfolded one the NIC itself.
using Mix = std::map<std::int64_t, std::int64_t>;

// How many NVLink-using and NIC-using lanes a slot has, as bit sets.
struct Lanes {
  std::uint32_t nic = 0, nvlink = 0;
};

Lanes lanes_of(const Plan& plan, const Timing& timing, std::uint32_t s) {
  Lanes lanes;
  for (TaskId t = plan.slots[s].begin; t < plan.slots[s].end; ++t) {
    const OpTiming& timing_of = timing.of(s, plan.tasks[t].op);
    const std::uint32_t bit = 1U << (plan.tasks[t].lane % kLanes);
    if (timing_of.nic > 0) lanes.nic |= bit;
    if (timing_of.nvlink > 0) lanes.nvlink |= bit;
  }
  return lanes;
}

class NicFinder {
 public:
  NicFinder(const Plan& plan, const Cluster& cluster)
      : plan_(plan), gpus_(cluster.gpus_per_node), nics_(std::clamp(cluster.nics, 1, cluster.gpus_per_node)) {
    const GroupTable& pipeline = plan.dimensions[static_cast<std::size_t>(Dimension::pipeline)];
    stage_of_.resize(plan.ranks);
    for (const auto& group : pipeline.groups) {
      for (std::size_t i = 0; i < group.size(); ++i) stage_of_[group[i]] = static_cast<std::int64_t>(i);
    }
  }

  std::int64_t nic_of(std::int64_t rank) const { return rank / gpus_ * nics_ + rank % gpus_ * nics_ / gpus_; }

  // Ranks of each stage that use the same NIC as this one.
  Mix mix(std::int64_t rank) const {
    Mix result;
    const std::int64_t node = rank / gpus_ * gpus_;
    for (std::int64_t r = node; r < std::min(node + gpus_, plan_.ranks); ++r) {
      if (nic_of(r) == nic_of(rank)) ++result[stage_of_[r]];
    }
    return result;
  }
  std::int64_t stage_of(std::int64_t rank) const { return stage_of_[rank]; }

 private:
  const Plan& plan_;
  std::int64_t gpus_, nics_;
  std::vector<std::int64_t> stage_of_;
};

}  // namespace

void find_shared_links(const Plan& plan, const Cluster& cluster, Timing& timing) {
  const NicFinder nics(plan, cluster);
  const bool folded = static_cast<std::int64_t>(plan.slots.size()) < plan.ranks;
  std::map<Mix, LinkId> ids;
  timing.links.assign(plan.slots.size(), {});
  for (std::uint32_t s = 0; s < plan.slots.size(); ++s) {
    const std::int64_t rank = plan.slots[s].representative;
    const Lanes lanes = lanes_of(plan, timing, s);
    SlotLinks& links = timing.links[s];
    const Mix mix = nics.mix(rank);
    std::int64_t users = 0;
    for (const auto& [stage, count] : mix) users += count;
    if (users * std::popcount(lanes.nic) > 1) {
      const auto [it, fresh] = ids.try_emplace(folded ? mix : Mix{{nics.nic_of(rank), 0}}, timing.link_count);
      if (fresh) timing.link_count += 2;
      links.nic_out = it->second;
      links.nic_in = it->second + 1;
      links.sharers = folded ? mix.at(nics.stage_of(rank)) : 1;
    }
    if (std::popcount(lanes.nvlink) > 1) {
      links.nvlink_out = timing.link_count++;
      links.nvlink_in = timing.link_count++;
    }
  }
  if (timing.link_count == 0) timing.links.clear();
}

}  // namespace orrery
