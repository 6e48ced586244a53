#include "models/schedule/weight_versions.h"

#include <algorithm>

namespace orrery {

WeightVersions weight_versions(const std::vector<Action>& order, const std::vector<Action>& reference,
                               std::int64_t every) {
  WeightVersions v;
  std::int64_t updates = 0, newest = 0;
  for (const Action& a : reference) {
    if (a.phase == Phase::backward && (a.micro_batch + 1) % every == 0) ++updates;
    if (a.phase != Phase::forward) continue;
    if (a.micro_batch % every == 0) newest = updates;
    v.met.push_back(newest);
  }
  for (const Action& a : order) {
    if (a.phase != Phase::backward || (a.micro_batch + 1) % every != 0) continue;
    const auto next = static_cast<std::size_t>(a.micro_batch) + 1;
    const std::int64_t update = a.micro_batch / every, made = update + 1;
    v.staleness = std::max(v.staleness, update - v.met[next - 1]);
    if (next < v.met.size()) v.kept = std::max(v.kept, made - v.met[next] + 1);
  }
  return v;
}

}  // namespace orrery
