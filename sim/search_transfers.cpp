// Bounds: what transfers between stages and among replicas add at least.
#include <algorithm>
#include <cmath>

#include "models/sharding.h"
#include "sim/search_bounds.h"

namespace orrery {
namespace {

// Of rates between two sampled sizes, which lie a fourth root of two apart, above the samples'.
constexpr double kSlack = 0.03;
constexpr double kLeastSample = 4096, kMostSample = 6.9e10;

}  // namespace

const NcclModel& Bounds::model(const std::vector<int>& spread) {
  const auto it = models_.find(spread);
  if (it != models_.end()) return it->second;
  return models_.emplace(spread, nccl_model(space_.base().cluster, spread, profile_.nccl)).first->second;
}

// Bytes in a picosecond at the size that suits the group best.
double Bounds::best_rate(const std::vector<int>& spread, CollectiveKind kind) {
  const auto [it, fresh] = rates_.try_emplace({spread, kind}, 0);
  if (!fresh) return it->second;
  const NcclModel& members = model(spread);
  double best = 0;
  for (double bytes = kLeastSample; bytes < kMostSample; bytes *= std::sqrt(std::sqrt(2.0)))
    best = std::max(best, bytes / nccl_choose(members, kind, static_cast<Bytes>(bytes)).seconds);
  return it->second = best * (1 + kSlack) / kPicosecondsPerSecond;
}

// How the ranks that hold the same weights lie on the nodes; empty where stages lie differently, and where nothing is
// known of transfers.
std::vector<int> Bounds::spread_of(const Strides& at) {
  const std::int64_t node = nccl_node_gpus(space_.base().cluster);
  const bool alike = at.pipeline % node == 0 || node % at.pipeline == 0 || layout_.pipeline == 1;
  const std::int64_t group = cell_.shard_group > 0 ? cell_.shard_group : layout_.replicas();
  if (group == 1 || !alike || !profile_.measured.transfers.empty()) return {};
  std::vector<std::int64_t> nodes;
  for (std::int64_t d = 0; d < layout_.data; ++d) {
    for (std::int64_t c = 0; c < layout_.context; ++c) nodes.push_back(d * at.data + c * at.context);
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.resize(group);
  std::vector<int> spread;
  std::int64_t last = -1;
  for (const std::int64_t rank : nodes) {
    if (rank / node != last) spread.push_back(0);
    ++spread.back();
    last = rank / node;
  }
  return spread;
}

Picoseconds Bounds::transfer(const Strides& at, CollectiveKind kind, Bytes bytes) {
  const std::vector<int> spread = spread_of(at);
  if (spread.empty()) return 0;
  return static_cast<Picoseconds>(static_cast<double>(bytes) / best_rate(spread, kind));
}

// A layer's unit, which is moved in one piece: so long exactly, when nothing is beside it.
Bounds::Moved Bounds::unit_of_layer(const Strides& at, CollectiveKind kind, Bytes bytes) {
  const std::vector<int> spread = spread_of(at);
  if (spread.empty() || space_.base().model.moe) return {};
  const auto [it, fresh] = moved_.try_emplace({spread, kind, bytes});
  if (!fresh) return it->second;
  const NcclChoice c = nccl_choose(model(spread), kind, bytes);
  const double sms = space_.base().cluster.gpu.sms, taken = std::min<double>(c.channels, sms / 2);
  it->second = {picoseconds(c.seconds), picoseconds(c.seconds * std::min(1.0, c.nic_share)),
                picoseconds(c.seconds * std::min(1.0, c.nvlink_share)), sms > 0 ? taken / (sms - taken) : 0};
  return it->second;
}

// From a stage to the next.
Picoseconds Bounds::hop(const Strides& at, std::int64_t stage) {
  const Spec& spec = space_.base();
  if (!profile_.measured.transfers.empty()) return 0;
  const std::int64_t node = nccl_node_gpus(spec.cluster);
  const bool near = stage * at.pipeline / node == (stage + 1) * at.pipeline / node;
  const bool cut = layout_.sequence_parallel || spec.software.scattered_sends != "none";
  const std::int64_t rows = layout_.micro_batch * spec.sequence / layout_.context / (cut ? layout_.tensor : 1);
  const Bytes bytes = rows * spec.model.hidden * storage_bytes(spec.strategy.precision);
  const auto [it, fresh] = sends_.try_emplace({near, bytes});
  if (fresh) {
    const std::vector<int> pair = near ? std::vector<int>{2} : std::vector<int>{1, 1};
    it->second = picoseconds(nccl_point_to_point(model(pair), near, bytes).seconds);
  }
  return it->second;
}

// What the units of a stage's weights move in a step: sums of their gradients, and the weights themselves before
// forward and backward.
Bounds::UnitTimes Bounds::unit_times(const Strides& at, const Stage& stage) {
  const Strategy& s = space_.base().strategy;
  const ShardingRow& row = row_of(cell_.sharding);
  const std::int64_t m = layout_.micro_batches;
  UnitTimes times;
  if (!units_) return times;
  const Bytes gradient = storage_bytes(s.gradient_precision), width = storage_bytes(s.precision);
  times.reduce = m * transfer(at, CollectiveKind::reduce_scatter, stage.elements * gradient);
  const std::int64_t again = row.reshards_after_forward ? stage.layer_elements : 0;  // gathered for backward too
  if (row.shards_parameters) {
    times.gather = m * transfer(at, CollectiveKind::all_gather, stage.elements * width);
    if (again > 0) times.gather += m * transfer(at, CollectiveKind::all_gather, again * width);
  }
  if (stage.layers == 0 || stage.layer_elements % stage.layers != 0) return times;
  const std::int64_t layer = stage.layer_elements / stage.layers, n = m * stage.layers;
  const Moved sum = unit_of_layer(at, CollectiveKind::reduce_scatter, layer * gradient);
  const std::int64_t gathers = !row.shards_parameters ? 0 : again > 0 ? 2 * n : n;
  const Moved weights = gathers > 0 ? unit_of_layer(at, CollectiveKind::all_gather, layer * width) : sum;
  times.reduce = std::max(times.reduce, n * sum.time);
  times.gather = std::max(times.gather, gathers * weights.time);
  const Picoseconds moving = std::max({n * sum.time, gathers * weights.time, n * sum.nic + gathers * weights.nic,
                                       n * sum.nvlink + gathers * weights.nvlink});
  const double pressure = std::min(sum.pressure, weights.pressure) * (1 + profile_.contention);
  times.slowed = static_cast<Picoseconds>(static_cast<double>(moving) * pressure / (1 + pressure));
  times.links = std::max(n * sum.nic + gathers * weights.nic, n * sum.nvlink + gathers * weights.nvlink);
  return times;
}

// Fills works_ and hops_; returns when the first stage's last backward ends, and raises `bound` to what else takes
// long.
Picoseconds Bounds::pipeline_end(const Features& f, const Strides& at, Picoseconds& bound) {
  const std::int64_t m = layout_.micro_batches, p = layout_.pipeline, v = cell_.virtual_stages;
  const bool one_each = cell_.schedule == "1f1b" || cell_.schedule == "dapple" || cell_.schedule == "zb-h1";
  hops_.assign(p, 0);
  works_.assign(p, 0);
  for (std::int64_t s = 1; s < p; ++s) hops_[s] = hops_[s - 1] + hop(at, s - 1);
  Picoseconds way = 0, end = 0;  // way: forward and back through this stage and those behind it
  for (std::int64_t s = p; s-- > 0;) {
    const Stage& stage = stages_[s];
    const UnitTimes units = unit_times(at, stage);
    Picoseconds waits = 0;
    if (!f.pipeline && p > 1) waits = (m * v - 1) * (s + 1 < p ? hops_[s + 1] - hops_[s] : hops_[s] - hops_[s - 1]);
    if (!f.gradient_reduce) waits = std::max(waits, units.reduce);
    if (!f.parameter_gather) waits = std::max(waits, units.gather);
    const Picoseconds input = m * (stage.forward.busy + stage.backward.busy) + waits;
    works_[s] = input + m * stage.weight.busy;
    const Picoseconds head = stage.head + hops_[s], tail = stage.tail + hops_[s];
    // Where the schedule splits, weight gradients may still run when the first stage has all its input gradients.
    end = std::max(end, head + (splits_ ? input : works_[s]) + tail);
    const Picoseconds kernels = m * (stage.forward.compute + stage.backward.compute + stage.weight.compute);
    bound = std::max(
        {bound, units.reduce, units.gather, units.links, head + works_[s], kernels + units.slowed + stage.update});
    way += stage.forward.through + stage.backward.through;
    if (s + 1 < p) way += 2 * (hops_[s + 1] - hops_[s]);
    const std::int64_t most = cell_.schedule == "naive" ? 1 : one_each ? p - s : 0;
    if (most == 0 || v > 1) continue;
    const std::int64_t rounds = (m - 1) / most, rest = (m - 1) % most;
    end = std::max(end, head + rest * stage.forward.busy + (rounds + 1) * way + tail);
  }
  return std::max(end, works_.front());
}

// A stage whose gradients stay whole until its last micro-batch: they are reduced when that has come back, and under
// sharding the weights are gathered after the update or before the next step's first forward. done: when its last
// backward ends.
Picoseconds Bounds::replicas_end(const Features& f, const Strides& at, std::size_t s, Picoseconds done) {
  const Software& w = space_.base().software;
  const Strategy& strategy = space_.base().strategy;
  const ShardingRow& row = row_of(cell_.sharding);
  const Stage& stage = stages_[s];
  const auto kind =
      row.shards_optimizer && !w.shards_all_reduce ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  const Bytes gradient = storage_bytes(strategy.gradient_precision);
  const Bytes width = w.gathers_eight_bit ? 1 : storage_bytes(strategy.precision);
  Picoseconds end = done;
  if (f.gradient_reduce) {
    const Picoseconds last = std::min(done, stage.backward.busy + stage.weight.busy);
    end = std::max(end, done - last + transfer(at, kind, stage.first_elements * gradient));
  } else {
    end += transfer(at, kind, stage.elements * gradient);
  }
  end += stage.update;
  if (!row.shards_optimizer) return end;
  if (!f.parameter_gather) return end + transfer(at, CollectiveKind::all_gather, stage.elements * width);
  const Picoseconds gather = transfer(at, CollectiveKind::all_gather, stage.first_elements * width);
  const Picoseconds rest = works_[s] - std::min(works_[s], stage.forward.busy);
  const Picoseconds last_layer = cell_.virtual_stages == 1 ? stage.last_forward : 0;
  return std::max(end, gather + last_layer + rest + (splits_ ? 0 : stage.tail + hops_[s]));
}

Bound Bounds::of(const Features& f) {
  const Strides at = strides_of(layout_, f.rank_order);
  Bound bound{.memory = memory_};
  const Picoseconds end = pipeline_end(f, at, bound.time);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    const Picoseconds issue = stage.forward.issue + stage.backward.issue + stage.weight.issue;
    const Picoseconds done = s == 0 ? end : stage.head + hops_[s] + works_[s];
    bound.time = std::max({bound.time, layout_.micro_batches * issue, done + stage.update});
    if (!units_) bound.time = std::max(bound.time, replicas_end(f, at, s, done));
  }
  return bound;
}

}  // namespace orrery
