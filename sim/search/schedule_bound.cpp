#include "sim/search/schedule_bound.h"

#include <algorithm>

#include "models/schedule/schedules.h"
#include "sim/search/units.h"

namespace orrery {
namespace {

// Times of the passes of virtual stages, added up in the way of the planner (models/planner/order.cpp), so that an
// order of passes that is chosen by these times is the planner's order.
std::vector<PhaseTimes> order_times(const CellWork& work) {
  const std::int64_t places = std::ssize(work.cut->layers);
  const std::int64_t most = most_again(work.cell.memory_plan, std::ssize(work.plain->layers));
  std::vector<std::int64_t> before(work.cell.layout.pipeline, 0);
  std::vector<PhaseTimes> times;
  for (std::int64_t k = 0; k < places; ++k) {
    OrderLength forward, input, weight;
    const auto add = [&](const BlockCost& block) {
      if (!block.order_times) return;
      for (const OrderLength& t : block.order_times->forward) forward.add(t);
      for (const OrderLength& t : block.order_times->input) input.add(t);
      for (const OrderLength& t : block.order_times->weight) weight.add(t);
    };
    if (work.second_cut != nullptr) {
      const ModelCost& second = *work.plain->second;
      if (k == 0) add(second.embedding);
      for (std::int64_t i = 0; i < work.second_cut->layers[k]; ++i) add(second.layers[work.second_cut->first[k] + i]);
      if (k + 1 == places) add(second.head);
    }
    std::int64_t& layers_before = before[work.placed->where.stage_of[k]];
    if (k == 0) add(work.plain->embedding);
    for (std::int64_t i = 0; i < work.cut->layers[k]; ++i)
      add((layers_before++ < most ? work.again : work.plain)->layers[work.cut->first[k] + i]);
    if (k + 1 == places) add(work.again->head);
    times.push_back({forward.whole(), input.whole(), weight.whole()});
  }
  return times;
}

// Whether order_times() gives the times by which the plan chooses its order of passes. The costs of layers assume that
// tensor ranks are next to each other, then context ranks, then data ranks; with another order of ranks, collectives
// take other times.
bool knows_order_times(const SearchCell& cell, const Features& f) {
  if (!needs_times(cell.memory_plan.schedule)) return true;
  const RankLayout& l = cell.layout;
  const Strides lie = strides_of(l, f.rank_order);
  const bool tensor = l.tensor == 1 || lie.tensor == 1;
  const bool context = l.context == 1 || lie.context == l.tensor;
  const bool data = l.expert == 1 || lie.data == l.tensor * l.context;
  return tensor && context && data;
}

// The order of passes in the plan of the strategies whose work is given; nullptr where the order is too long to be
// timed.
const KnownOrder* order_of_plan(BoundCache& cache, const CellWork& work) {
  const std::string_view schedule = work.cell.memory_plan.schedule;
  ScheduleShape shape = schedule_shape(cache.space.base(), work.cell);
  if (needs_times(schedule)) shape.times = order_times(work);
  return cache.orders.of(schedule, shape);
}

// The least work that a stage still has to do at the moment when the first of all stages begins backward. busy,
// free_overlap: as in PassCost; gathered: number of layers whose weights have been gathered before that moment.
struct WorkLeft {
  Picoseconds busy = 0, free_overlap = 0;
  std::int64_t gathered = 0;
};

// The work that stage s still has to do when the first backward pass of any stage begins. By then it counts as having
// done the forward passes with which its order begins, the weight gathers for these passes, and the gathers of a few
// layers' weights ahead of the next passes.
WorkLeft work_left(const CellWork& work, const KnownOrder& order, std::int64_t prefetch_units, std::int64_t s) {
  const StageWork& stage = work.stages[s];
  const std::int64_t m = work.cell.micro_batches;
  WorkLeft left{m * (stage.forward.busy + stage.backward.busy + stage.weight.busy),
                m * (stage.forward.free_overlap + stage.backward.free_overlap + stage.weight.free_overlap),
                prefetch_units + 1};
  const auto had = [&](std::int64_t k) {
    left.busy -= work.virtual_stages[k].forward.through;
    left.free_overlap -= work.virtual_stages[k].forward.free_overlap;
    left.gathered += work.cut->layers[k] + 2;  // 2: the units of embedding and output, which count as gathered
  };
  for (const Action& a : order.schedule.order[s]) {
    if (a.phase != Phase::forward) break;
    had(order.virtual_stage[s][a.chunk]);
  }
  return left;
}

}  // namespace

Bound schedule_bound(LayoutCosts& costs, const CellBounds& cell, const Features& f) {
  const CellWork& work = cell.work;
  const PointTime point = point_time(costs, work, cell.time, f);
  Bound bound = bound_of(costs, cell, point);
  if (!knows_order_times(work.cell, f)) return bound;
  const KnownOrder* order = order_of_plan(costs.cache, work);
  if (order == nullptr) return bound;
  if (needs_times(work.cell.memory_plan.schedule))
    bound.memory = std::max(bound.memory, memory_in(costs, work, cell.memory, *order));
  const std::vector<Picoseconds> ends = play(*order, work.virtual_stages, point.hops.boundaries, !f.pipeline);
  for (std::size_t s = 0; s < work.stages.size(); ++s) {
    const Picoseconds after = unit_times(costs.cache, *point.replicas, work, work.stages[s]).after;
    bound.time = std::max(bound.time, ends[s] + after + cell.time.updates[s]);
    if (!work.units) bound.time = std::max(bound.time, replicas_end(costs.cache, work, cell.time, point, s, ends[s]));
  }
  return bound;
}

// Strategies that differ only in which layers are recomputed have equal forward passes, with two exceptions: where
// forward cuts or casts the tensors of layers that are not recomputed, and where the order of passes is chosen by the
// times of all passes. Offloading activations makes no forward pass shorter.
bool forward_is_shared(const Spec& base, const MemoryPlan& memory_plan) {
  return !base.strategy.partition_activations && !base.software.kernels.fp8_activation_inputs &&
         !base.software.kernels.packs_attention_output && !needs_times(memory_plan.schedule);
}

bool runs_whole_stage_again(const CellWork& work) {
  const MemoryPlan& memory_plan = work.cell.memory_plan;
  if (memory_plan.recompute == "none") return false;
  std::int64_t least = work.stages.front().layers;
  for (const StageWork& s : work.stages) least = std::min(least, s.layers);
  return memory_plan.recompute_layers < 0 || memory_plan.recompute_layers >= least;
}

Picoseconds after_turn(LayoutCosts& costs, const CellBounds& cell, const Features& f, std::int64_t s) {
  const CellWork& work = cell.work;
  if (s < 0 || work.cell.copies > 1 || work.woven || !knows_order_times(work.cell, f)) return 0;
  const KnownOrder* order = order_of_plan(costs.cache, work);
  if (order == nullptr) return 0;
  const Strides at = strides_of(costs.layout, f.rank_order);
  const WorkLeft left = work_left(work, *order, costs.cache.space.base().strategy.prefetch_units, s);
  const StageWork& stage = work.stages[s];
  const Picoseconds back = work.splits ? 0 : stage.tail + hops_of(costs, work, at).before[s];
  const Picoseconds least = cell.time.least_update;
  if (!work.units) return std::max(left.busy + cell.time.updates[s], left.busy + back + least);
  ReplicaGroup& group = replicas_of(costs.cache, work.cell, at);
  const UnitTimes units = unit_times(costs.cache, group, work, stage, left.gathered);
  return with_units(units, left.busy, std::max<Picoseconds>(0, left.free_overlap), std::max(back, units.after)) + least;
}

}  // namespace orrery
