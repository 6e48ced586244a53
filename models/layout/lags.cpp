#include "models/layout/lags.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "models/partition/layers_of_stages.h"
#include "models/schedule/order_length.h"
#include "models/spec/stragglers.h"

namespace orrery {
namespace {

void share_in_tensor_groups(const GroupTable& tensor, std::vector<Lag>& felt) {
  for (const auto& group : tensor.groups) {
    // `felt` has the slowdowns of workers only, so groups of parameter servers are skipped.
    if (group.front() >= static_cast<std::int64_t>(felt.size())) continue;
    Lag most = felt[group.front()];
    for (const std::int32_t r : group) most = std::max(most, felt[r]);
    for (const std::int32_t r : group) felt[r] = most;
  }
}

// Returns the cost of every virtual stage, which is the sum of its layers' costs.
std::vector<double> stage_costs(const Draft& draft) {
  const std::vector<double> layers = layer_costs(draft.facts.spec);
  std::vector<double> costs(draft.schedule.virtual_stages(), 0);
  for (std::size_t k = 0; k < std::min(costs.size(), draft.layers_of.size()); ++k) {
    const auto first = layers.begin() + draft.first_layer[k];
    costs[k] = std::accumulate(first, first + draft.layers_of[k], 0.0);
  }
  return costs;
}

// Returns the time of a replica's pipeline, in arbitrary units. slow: the slowdown of each stage. Backward is taken to
// last twice as long as forward, or three times as long with recomputation.
std::int64_t time_of(const Draft& draft, const std::vector<double>& costs, const std::vector<double>& slow) {
  const Strategy& s = draft.facts.spec.strategy;
  const double most = *std::max_element(costs.begin(), costs.end()) + 1;
  constexpr double kUnits = 1e6;  // forward time of the costliest stage, in arbitrary integer units
  ScheduleShape shape;
  shape.stages = s.pipeline;
  shape.micro_batches = draft.plan.micro_batches;
  for (std::size_t k = 0; k < costs.size(); ++k) {
    const auto forward = static_cast<std::int64_t>(kUnits * costs[k] / most * slow[draft.schedule.stage_of[k]]) + 1;
    shape.times.push_back({forward, s.recompute.layer ? 2 * forward : forward, forward});
  }
  return order_length(draft.schedule, draft.schedule.order, shape, 0);
}

// Returns the `most` slowest replicas of the list `order`, which begins with the slowest. Replicas in which some stage
// is slower than in all replicas before them in the list are preferred, because a stage's update waits for the stage's
// slowest rank in any replica.
std::set<std::int64_t> slowest(const std::vector<std::pair<std::int64_t, std::int64_t>>& order,
                               const std::vector<std::vector<double>>& slow, std::size_t most) {
  std::set<std::int64_t> kept;
  std::vector<double> seen(slow.front().size(), 1);
  const auto keep = [&](std::int64_t d) {
    if (kept.size() < most) kept.insert(d);
  };
  for (const auto& [time, d] : order) {
    bool fresh = false;
    for (std::size_t stage = 0; stage < seen.size(); ++stage) {
      fresh = fresh || slow[d][stage] > seen[stage];
      seen[stage] = std::max(seen[stage], slow[d][stage]);
    }
    if (fresh) keep(d);
  }
  for (const auto& [time, d] : order) keep(d);
  return kept;
}

}  // namespace

std::vector<Lag> lags_felt(const Cluster& c, const std::vector<double>& slow) {
  const auto gpus = static_cast<std::size_t>(std::max(1, c.gpus_per_node));
  const auto nics = static_cast<std::size_t>(std::clamp(c.nics, 1, std::max(1, c.gpus_per_node)));
  const auto nic_of = [&](std::size_t rank) { return rank / gpus * nics + rank % gpus * nics / gpus; };
  std::vector<Lag> felt;
  for (std::size_t r = 0; r < slow.size(); ++r) {
    felt.push_back({slow[r]});
    const std::size_t node = r / gpus * gpus;
    for (std::size_t other = node; slow.size() > gpus && other < std::min(node + gpus, slow.size()); ++other) {
      if (other != r && slow[other] > 1 && nic_of(other) == nic_of(r)) felt[r].push_back(slow[other]);
    }
    std::sort(felt[r].begin() + 1, felt[r].end());
  }
  return felt;
}

double slowdown_of(const Spec& spec, const Plan& plan, const RankClass& ranks) {
  double slow = slowdown_of(spec, ranks.representative);
  if (ranks.multiplicity == 1) return slow;
  const GroupTable& tensor = plan.dimensions[static_cast<std::size_t>(Dimension::tensor)];
  for (const std::int32_t r : tensor.groups[tensor.member_of[ranks.representative]]) {
    if (plan.kind_of(r) == plan.kind_of(ranks.representative)) slow = std::max(slow, slowdown_of(spec, r));
  }
  return slow;
}

void simplify_lags(const Draft& draft, const GroupTable& tensor, std::size_t most, std::vector<Lag>& felt) {
  const Strategy& s = draft.facts.spec.strategy;
  const std::vector<Coordinates>& at = draft.coordinates;
  share_in_tensor_groups(tensor, felt);
  std::vector<std::vector<double>> slow(s.data, std::vector<double>(s.pipeline, 1));
  std::vector<std::vector<Lag>> lists(s.data);
  for (std::size_t r = 0; r < felt.size(); ++r) {
    double& stage = slow[at[r].data][at[r].pipeline];
    stage = std::max(stage, felt[r].front());
    lists[at[r].data].push_back(felt[r]);
  }
  // Replicas whose ranks have equal lists of slowdowns (Lag) take the same time, so only the first of them is compared
  // with other replicas.
  const std::vector<double> costs = stage_costs(draft);
  std::map<std::vector<Lag>, std::int64_t> first;
  // The replicas to compare: pairs of minus the time of the replica's pipeline and the replica's index, so that sorting
  // puts the slowest replica first
  std::vector<std::pair<std::int64_t, std::int64_t>> order;
  for (std::int64_t d = 0; d < s.data; ++d) {
    if (first.try_emplace(lists[d], d).second) order.emplace_back(-time_of(draft, costs, slow[d]), d);
  }
  std::sort(order.begin(), order.end());
  const std::set<std::int64_t> kept = slowest(order, slow, most);
  for (std::size_t r = 0; r < felt.size(); ++r) {
    if (!kept.contains(first.at(lists[at[r].data]))) felt[r] = {1};
  }
}

}  // namespace orrery
