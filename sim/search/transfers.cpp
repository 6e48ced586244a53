#include "sim/search/transfers.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

// Rates of transfers are sampled at sizes that grow by a factor of 2^(1/4). Between two sampled sizes the rate may
// exceed the samples by this share.
constexpr double kSlack = 0.03;
constexpr double kLeastSample = 4096, kMostSample = 6.9e10;

// Whether the times of transfers come from measurements, and not from the model of the library alone; bounds then leave
// transfers out.
bool is_measured(const Profile& profile) { return !profile.measured.transfers.empty() || profile.steps.steps > 0; }

// The highest rate, in bytes per picosecond, that a group of ranks reaches in a transfer of any size.
double best_rate(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind) {
  const auto [it, fresh] = group.rates.try_emplace(kind, 0);
  if (!fresh) return it->second;
  const NcclModel& members = model_of(cache, group.spread);
  double best = 0;
  for (double bytes = kLeastSample; bytes < kMostSample; bytes *= std::sqrt(std::sqrt(2.0)))
    best = std::max(best, bytes / nccl_choose(members, kind, static_cast<Bytes>(bytes)).seconds);
  return it->second = best * (1 + kSlack) / kPicosecondsPerSecond;
}

// For each node that holds any of the ranks, how many of the ranks are on it. node: number of ranks on a node.
std::vector<int> spread_of(std::vector<std::int64_t> ranks, std::int64_t node) {
  std::sort(ranks.begin(), ranks.end());
  std::vector<int> spread;
  std::int64_t last = -1;
  for (const std::int64_t rank : ranks) {
    if (rank / node != last) spread.push_back(0);
    ++spread.back();
    last = rank / node;
  }
  return spread;
}

// The numbers of the first `size` ranks that hold the weights of stage 0.
std::vector<std::int64_t> first_ranks(const RankLayout& l, const Strides& at, std::int64_t size) {
  std::vector<std::int64_t> ranks;
  for (std::int64_t d = 0; d < l.data; ++d) {
    for (std::int64_t c = 0; c < l.context; ++c) ranks.push_back(d * at.data + c * at.context);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.resize(size);
  return ranks;
}

// For each node, how many of the first `size` ranks of a stage are on it; empty where this differs from stage to stage.
std::vector<int> spread_of_stages(const RankLayout& l, const Strides& at, std::int64_t size, std::int64_t node) {
  const bool alike = at.pipeline % node == 0 || node % at.pipeline == 0 || l.pipeline == 1;
  return alike ? spread_of(first_ranks(l, at, size), node) : std::vector<int>();
}

// For each node, how many of the first `size` ranks of a stage s, and of its mirror stage (stage p - 1 - s of p, which
// holds the same weights), are on it; empty where this differs between such pairs of stages.
std::vector<int> spread_of_pairs(const RankLayout& l, const Strides& at, std::int64_t size, std::int64_t node) {
  const std::vector<std::int64_t> first = first_ranks(l, at, size);
  std::vector<int> all;
  for (std::int64_t s = 0; s < l.pipeline / 2; ++s) {
    std::vector<std::int64_t> ranks;
    for (const std::int64_t rank : first) {
      for (const std::int64_t stage : {s, l.pipeline - 1 - s}) ranks.push_back(rank + stage * at.pipeline);
    }
    const std::vector<int> spread = spread_of(std::move(ranks), node);
    if (s > 0 && spread != all) return {};
    all = spread;
  }
  return all;
}

// The group of ranks that share the gradients of one stage or, with two copies of the model (pairs), of a stage and its
// mirror stage. size: number of these ranks on each stage. For size 1 the group gets no transfer costs, even where two
// copies share gradients: the costs of layers (ModelCost) are then those of a rank that adds up gradients by itself.
ReplicaGroup& group_of(BoundCache& cache, const RankLayout& l, const Strides& at, std::int64_t size, bool pairs) {
  const std::int64_t stages = pairs || l.pipeline == 1 ? l.pipeline : 0;
  const auto [it, fresh] =
      cache.groups.try_emplace({at.data, at.context, at.pipeline, size, l.data, l.context, stages, pairs});
  ReplicaGroup& group = it->second;
  if (!fresh || size == 1 || is_measured(cache.profile)) return group;
  const std::int64_t node = nccl_node_gpus(cache.space.base().cluster);
  group.spread = pairs ? spread_of_pairs(l, at, size, node) : spread_of_stages(l, at, size, node);
  if (!group.spread.empty()) group.channels = model_of(cache, group.spread).graphs.collective_channels;
  return group;
}

// By how much kernels slow down beside a transfer with this number of NCCL channels, as a share of their time alone (as
// in sim/cost/costs.cpp).
double pressure_of(const BoundCache& cache, int channels) {
  const double sms = cache.space.base().cluster.gpu.sms, taken = std::min<double>(channels, sms / 2);
  return sms > 0 ? taken / (sms - taken) * (1 + cache.profile.contention) : 0;
}

// Time to send the hidden states of a micro-batch from a stage to the next. near: whether both stages are on one node.
Picoseconds send_time(LayoutCosts& costs, bool near) {
  std::optional<Picoseconds>& known = costs.sends[near ? 1 : 0];
  if (known) return *known;
  known = 0;
  if (is_measured(costs.cache.profile)) return 0;
  const Spec& spec = costs.cache.space.base();
  const RankLayout& l = costs.layout;
  const bool cut = l.sequence_parallel || spec.software.communication.scattered_sends != ScatteredSends::none;
  const std::int64_t rows = l.micro_batch * spec.sequence / l.context / (cut ? l.tensor : 1);
  // A stage may begin to compute with the hidden states of one of the two models, before the other ones arrive.
  std::int64_t columns = spec.model.hidden * streams_of(spec.model);
  if (spec.second) columns = std::min(columns, spec.second->model.hidden * streams_of(spec.second->model));
  const Bytes bytes = rows * columns * storage_bytes(spec.strategy.precision);
  const std::vector<int> pair = near ? std::vector<int>{2} : std::vector<int>{1, 1};
  known = picoseconds(nccl_point_to_point(model_of(costs.cache, pair), near, bytes).seconds);
  return *known;
}

}  // namespace

const NcclModel& model_of(BoundCache& cache, const std::vector<int>& spread) {
  const auto it = cache.models.find(spread);
  if (it != cache.models.end()) return it->second;
  const Spec& base = cache.space.base();
  return cache.models
      .emplace(spread, nccl_model(base.cluster, spread, {base.software.communication.nccl_minor, base.gpus},
                                  cache.profile.nccl))
      .first->second;
}

ReplicaGroup& replicas_of(BoundCache& cache, const SearchCell& cell, const Strides& at) {
  const std::int64_t shared = cell.memory_plan.shard_group > 0 ? cell.memory_plan.shard_group : cell.layout.replicas();
  return group_of(cache, cell.layout, at, cell.copies > 2 ? 1 : shared, cell.copies == 2);
}

Picoseconds transfer_time(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes) {
  if (group.spread.empty()) return 0;
  return static_cast<Picoseconds>(static_cast<double>(bytes) / best_rate(cache, group, kind));
}

MovedUnit unit_of_layer(BoundCache& cache, ReplicaGroup& group, CollectiveKind kind, Bytes bytes) {
  if (group.spread.empty() || cache.space.base().model.moe) return {};
  const auto [it, fresh] = group.moved.try_emplace({kind, bytes});
  if (!fresh) return it->second;
  const NcclModel& members = model_of(cache, group.spread);
  const NcclChoice c = nccl_choose(members, kind, bytes);
  it->second = {picoseconds(c.seconds + nccl_late_members(members, kind)),
                picoseconds(c.seconds * std::min(1.0, c.nic_share)),
                picoseconds(c.seconds * std::min(1.0, c.nvlink_share)), pressure_of(cache, c.channels)};
  return it->second;
}

Hops hops_of(LayoutCosts& costs, const CellWork& work, const Strides& at) {
  const std::vector<std::int32_t>& stage_of = work.placed->where.stage_of;
  const std::int64_t node = nccl_node_gpus(costs.cache.space.base().cluster);
  const std::int64_t places = work.placed->where.virtual_stages();
  Hops hops;
  hops.boundaries.assign(stage_of.size(), 0);
  for (std::size_t k = 0; k + 1 < stage_of.size(); ++k) {
    const std::int64_t a = stage_of[k], b = stage_of[k + 1];
    const bool between = a != b && static_cast<std::int64_t>(k + 1) % places != 0;
    if (between) hops.boundaries[k] = send_time(costs, a * at.pipeline / node == b * at.pipeline / node);
  }
  hops.before.assign(work.stages.size(), 0);
  for (std::size_t s = 0; s < work.stages.size(); ++s) {
    for (std::int64_t k = 0; k < work.stages[s].first_place; ++k) hops.before[s] += hops.boundaries[k];
  }
  return hops;
}

}  // namespace orrery
