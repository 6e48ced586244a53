#include "sim/report/link_use.h"

#include <algorithm>
#include <map>
#include <utility>

#include "sim/report/link_side.h"

namespace orrery {
namespace {

// The bytes over a link, in picoseconds at its full rate times kFullRate, and a class of ranks that sends them.
struct Carried {
  double sum = 0;
  std::uint32_t slot = 0;
};

}  // namespace

std::vector<LinkUseRow> link_uses(const Plan& plan, const Timing& timing, Picoseconds step, const Cluster& cluster) {
  std::map<LinkSide, Carried> links;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const std::uint32_t slot = plan.slot_of(t);
    const OpTiming& op = timing.of(slot, plan.tasks[t].op);
    if (op.nic == 0 && op.nvlink == 0 && op.uplink == 0) continue;
    for_each_link(timing, slot, op, [&](const LinkSide& link, std::int64_t rate) {
      Carried& c = links.try_emplace(link, Carried{0, slot}).first->second;
      c.sum += static_cast<double>(rate) * static_cast<double>(op.duration);
    });
  }
  std::map<std::pair<LinkKind, std::uint8_t>, std::pair<LinkSide, Carried>> fullest;
  for (const auto& [link, carried] : links) {
    const auto [it, fresh] = fullest.try_emplace({link.kind, link.level}, link, carried);
    if (!fresh && carried.sum > it->second.second.sum) it->second = {link, carried};
  }
  std::vector<LinkUseRow> rows;
  if (fullest.empty() || step <= 0) return rows;
  const LinkNames names(plan, cluster, fullest.rbegin()->first.first == LinkKind::uplink);
  const double whole = static_cast<double>(step) * static_cast<double>(plan.steps) * static_cast<double>(kFullRate);
  for (const auto& [kind, most] : fullest)
    rows.push_back({names.name(most.first), names.of(most.first, most.second.slot), most.second.sum / whole});
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.share > b.share; });
  return rows;
}

}  // namespace orrery
