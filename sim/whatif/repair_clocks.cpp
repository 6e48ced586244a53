#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <vector>

#include "models/base/quantile.h"
#include "sim/whatif/measured_run.h"

namespace orrery {
namespace {

// For each pair of workers (first key, second key) and each transfer that both take part in: the end on the second
// worker's clock minus the end on the first one's.
using Differences = std::map<std::int32_t, std::map<std::int32_t, std::vector<double>>>;

Differences differences_of(const MeasuredRun& run) {
  std::map<std::int64_t, std::map<std::int32_t, double>> ends;
  for (const MeasuredOp& o : run.operations) {
    if (o.group >= 0) ends[o.group].try_emplace(o.worker, o.end);
  }
  Differences differences;
  for (const auto& [group, by_worker] : ends) {
    const auto& [first, first_end] = *by_worker.begin();
    for (const auto& [worker, end] : by_worker) {
      if (worker == first) continue;
      differences[first][worker].push_back(end - first_end);
      differences[worker][first].push_back(first_end - end);
    }
  }
  return differences;
}

}  // namespace

double repair_clocks(MeasuredRun& run) {
  const Differences differences = differences_of(run);
  std::vector<double> late(run.workers.size(), 0);  // for each worker, the seconds by which its clock is ahead
  std::vector<bool> known(run.workers.size(), false);
  for (std::size_t root = 0; root < known.size(); ++root) {
    if (known[root]) continue;
    known[root] = true;
    for (std::deque<std::size_t> next = {root}; !next.empty(); next.pop_front()) {
      const auto found = differences.find(static_cast<std::int32_t>(next.front()));
      if (found == differences.end()) continue;
      for (const auto& [worker, values] : found->second) {
        const auto w = static_cast<std::size_t>(worker);
        if (known[w]) continue;
        known[w] = true;
        late[w] = late[next.front()] + median(values);
        next.push_back(w);
      }
    }
  }
  for (MeasuredOp& o : run.operations) {
    o.begin -= late[static_cast<std::size_t>(o.worker)];
    o.end -= late[static_cast<std::size_t>(o.worker)];
  }
  double largest = 0;
  for (const double l : late) largest = std::max(largest, std::abs(l));
  return largest;
}

}  // namespace orrery
