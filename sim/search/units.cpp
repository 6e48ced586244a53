#include "sim/search/units.h"

#include <algorithm>
#include <cmath>

#include "models/spec/sharding.h"

namespace orrery {
namespace {

// Adds the times of gathering the weights and reducing the gradients of a stage's layers, all of the same size.
void add_layers(UnitTimes& times, BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage,
                std::int64_t gathered) {
  const Strategy& s = cache.space.base().strategy;
  const ShardingRow& row = row_of(work.cell.memory_plan.sharding);
  const Bytes gradient = storage_bytes(s.gradient_precision), width = storage_bytes(s.precision);
  const std::int64_t layer = stage.weights.layer_elements / stage.layers;
  const std::int64_t n = work.cell.micro_batches * stage.layers;
  const bool again = row.reshards_after_forward && layer > 0;
  const MovedUnit sum = unit_of_layer(cache, group, CollectiveKind::reduce_scatter, layer * gradient);
  const std::int64_t all = !row.shards_parameters ? 0 : again ? 2 * n : n;
  const std::int64_t gathers = std::max<std::int64_t>(0, all - gathered);
  const MovedUnit weights =
      gathers > 0 ? unit_of_layer(cache, group, CollectiveKind::all_gather, layer * width) : MovedUnit{};
  times.reduce = std::max(times.reduce, n * sum.time);
  times.gather = std::max(times.gather, gathers * weights.time);
  times.pressure = sum.pressure + weights.pressure;
  times.least_pressure = gathers > 0 ? std::min(sum.pressure, weights.pressure) : sum.pressure;
  times.links = std::max(n * sum.nic + gathers * weights.nic, n * sum.nvlink + gathers * weights.nvlink);
}

// Adds the times of the first weight gathers of a step and of its last gradient reductions. While these run, the stage
// computes nothing except the embedding, which comes before the first layer.
void add_ends(UnitTimes& times, BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage) {
  const Strategy& s = cache.space.base().strategy;
  const bool gathers = row_of(work.cell.memory_plan.sharding).shards_parameters, table = stage.first_place == 0;
  // No bounds are known with a vision encoder, whose units come before the embedding and may be smaller than a layer.
  if (table && cache.space.base().images) return;
  const Bytes gradient = storage_bytes(s.gradient_precision), width = storage_bytes(s.precision);
  const std::int64_t layer = stage.weights.layer_elements / stage.layers;
  const std::int64_t outer = table ? std::min(layer, work.plain->embedding.elements) : layer;
  // The first compute of a step may be that of a frozen model beside this one, which needs other weights.
  const bool first_gathers = gathers && work.second_cut == nullptr;
  if (first_gathers) times.before = transfer_time(cache, group, CollectiveKind::all_gather, outer * width);
  // Reductions after the last compute are counted only if virtual stage k is on stage k modulo the number of stages
  // (in_turn). In a V-shaped placement, for example, a stage's last chunk may hold only the blocks after the model's
  // last layer.
  if (!work.in_turn) return;
  times.after = transfer_time(cache, group, CollectiveKind::reduce_scatter, outer * gradient);
  if (work.cut->layers[stage.first_place] == 0) return;
  const std::int64_t first = work.cut->first[stage.first_place];
  const BlockCost none, &ahead = table ? work.plain->embedding : none;
  // While the transfer runs, the embedding may compute, slowed by the transfer. The bound counts that compute as work
  // already, so that its time is subtracted from the transfer's; if nothing computes, nothing is subtracted.
  const auto both = [&](CollectiveKind kind, Bytes each, Picoseconds beside) {
    const MovedUnit moved = unit_of_layer(cache, group, kind, layer * each);
    const double slowed = static_cast<double>(beside) * (1 + std::max(moved.pressure, times.pressure));
    return transfer_time(cache, group, kind, ahead.elements * each) + moved.time -
           static_cast<Picoseconds>(std::ceil(slowed));
  };
  if (first_gathers)
    times.before = std::max(times.before, both(CollectiveKind::all_gather, width, ahead.forward.through));
  if (work.splits) return;
  const Picoseconds trails = std::max(work.plain->layers[first].trails, work.again->layers[first].trails);
  const Picoseconds beside = trails + ahead.backward.through;
  times.after = std::max(times.after, both(CollectiveKind::reduce_scatter, gradient, beside));
}

}  // namespace

UnitTimes unit_times(BoundCache& cache, ReplicaGroup& group, const CellWork& work, const StageWork& stage,
                     std::int64_t gathered) {
  const Strategy& s = cache.space.base().strategy;
  const ShardingRow& row = row_of(work.cell.memory_plan.sharding);
  const StageWeights& weights = stage.weights;
  const std::int64_t m = work.cell.micro_batches;
  UnitTimes times;
  if (!work.units || group.spread.empty()) return times;
  // If two copies of the model overlap op by op, one copy may compute while the other waits for a transfer, so that
  // transfers need not lengthen the step.
  if (work.woven && work.cell.copies > 1) return times;
  const Bytes gradient = storage_bytes(s.gradient_precision), width = storage_bytes(s.precision);
  times.reduce = m * transfer_time(cache, group, CollectiveKind::reduce_scatter, weights.elements * gradient);
  if (row.shards_parameters && gathered == 0) {
    // Number of weights (elements) that are gathered again for backward.
    const std::int64_t again = row.reshards_after_forward ? weights.layer_elements : 0;
    times.gather = m * transfer_time(cache, group, CollectiveKind::all_gather, weights.elements * width);
    if (again > 0) times.gather += m * transfer_time(cache, group, CollectiveKind::all_gather, again * width);
  }
  if (stage.layers == 0 || weights.layer_elements % stage.layers != 0) return times;
  add_layers(times, cache, group, work, stage, gathered);
  add_ends(times, cache, group, work, stage);
  return times;
}

Picoseconds with_units(const UnitTimes& units, Picoseconds work, Picoseconds free_overlap, Picoseconds idle) {
  constexpr double kLonger = 1.05;  // factor by which transfers take longer when they share a link with others
  const auto lost = [](double pressure) { return pressure / (1 + pressure); };
  const double moving = static_cast<double>(std::max({units.links, units.reduce, units.gather}));
  const double both = std::max(0.0, static_cast<double>(units.reduce + units.gather) - moving);
  const double one = std::max(0.0, moving - both);
  const double most = lost(units.pressure);
  const double hidden = static_cast<double>(free_overlap) * kLonger * most;
  const double slowed = std::max(0.0, both * most + one * lost(units.least_pressure) - hidden);
  return work + static_cast<Picoseconds>(slowed + static_cast<double>(idle) * (1 - most));
}

}  // namespace orrery
