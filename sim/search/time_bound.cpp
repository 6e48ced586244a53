#include "sim/search/time_bound.h"

#include <algorithm>

#include "models/cost/kernel_time.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/search/host.h"
#include "sim/search/units.h"

namespace orrery {
namespace {

// Time in which one rank computes the gradient norm, clips, and updates `elements` parameters.
Picoseconds update_time(BoundCache& cache, std::int64_t elements) {
  const auto [it, fresh] = cache.updates.try_emplace(elements);
  if (!fresh) return it->second;
  const Spec& spec = cache.space.base();
  const Strategy& s = spec.strategy;
  const Bytes width = storage_bytes(s.precision), gradient = storage_bytes(s.gradient_precision);
  const auto time = [&](const Work& work) {
    const Op op{.name = "", .work = work, .phase = Phase::step, .precision = s.precision};
    return picoseconds(kernel_time(op, width, spec.cluster.gpu, cache.profile,
                                   name_in(kFlashKernels, spec.software.kernels.attention_kernel)));
  };
  const bool master = width < s.optimizer.master_bytes;
  const Update update = {elements,
                         gradient,
                         master ? s.optimizer.master_bytes : 0,
                         s.optimizer.moment_bytes,
                         0,
                         s.optimizer.moments(),
                         spec.software.kernels.fused_optimizer};
  Picoseconds sum = 0;
  if (s.clip > 0) sum += time(SquaredNorm{elements, gradient});
  if (s.clip > 0 && !spec.software.kernels.fused_clip) sum += time(Multiply{elements, gradient});
  sum += time(update);
  return it->second = sum;
}

Picoseconds issue_of(const StageWork& stage) { return stage.forward.issue + stage.backward.issue + stage.weight.issue; }

// A lower bound of the end time of a stage that gathers weights and reduces gradients layer by layer. Where backward is
// split, weight gradients may fill the time in which gradients go back to the first stage, so that this time does not
// count as idle.
Picoseconds units_end(const UnitTimes& units, const CellWork& work, const StageWork& stage, Picoseconds hops) {
  const std::int64_t m = work.cell.micro_batches;
  const Picoseconds back = work.splits ? 0 : stage.tail + hops;
  const Picoseconds idle = std::max(stage.head + hops, units.before) + std::max(back, units.after);
  const Picoseconds busy = m * (stage.forward.busy + stage.backward.busy + stage.weight.busy);
  return with_units(units, busy,
                    m * (stage.forward.free_overlap + stage.backward.free_overlap + stage.weight.free_overlap), idle);
}

// The time in a step in which stage s waits for sends and for gathers of weights that do not run beside compute.
Picoseconds waits_of(const CellWork& work, const PointTime& point, const UnitTimes& units, std::int64_t s) {
  const std::int64_t p = work.cell.layout.pipeline, v = work.cell.memory_plan.virtual_stages;
  const std::vector<Picoseconds>& hops = point.hops.before;
  Picoseconds waits = 0;
  if (!point.features.pipeline && p > 1 && work.in_turn)
    waits = (work.cell.micro_batches * v - 1) * (s + 1 < p ? hops[s + 1] - hops[s] : hops[s] - hops[s - 1]);
  return point.features.parameter_gather ? waits : std::max(waits, units.gather);
}

// A lower bound of the end time of stage s under a schedule that limits how many micro-batches are between forward and
// backward on the stage: once there are so many, the stage starts another only when one has ended its backward. 0 where
// the schedule has no such limit. way: time of a forward and a backward through this stage and all later ones; hops:
// time of the sends before this stage.
Picoseconds end_of_rounds(const CellWork& work, std::int64_t s, Picoseconds way, Picoseconds hops) {
  const ScheduleRow& schedule = find_schedule(work.cell.memory_plan.schedule);
  if (schedule.in_flight == nullptr || work.cell.memory_plan.virtual_stages > 1) return 0;
  const std::int64_t m = work.cell.micro_batches, most = schedule.in_flight(work.cell.layout.pipeline, s, m);
  const std::int64_t rounds = (m - 1) / most, rest = (m - 1) % most;
  const StageWork& stage = work.stages[s];
  return stage.head + hops + rest * stage.forward.busy + (rounds + 1) * way + stage.tail + hops;
}

// Computes the work of each stage for one strategy (point.works) and lower bounds of times. Returns the bound of the
// time when the last backward ends on the first stage. Raises point.on_device, the strategy's bound of the step time,
// to the largest bound found here.
Picoseconds pipeline_end(BoundCache& cache, const CellWork& work, const TimeBound& time, PointTime& point) {
  const std::int64_t m = work.cell.micro_batches, p = work.cell.layout.pipeline;
  const std::vector<Picoseconds>& hops = point.hops.before;
  point.works.assign(p, 0);
  Picoseconds way = 0, end = 0;
  for (std::int64_t s = p; s-- > 0;) {
    const StageWork& stage = work.stages[s];
    const UnitTimes units = unit_times(cache, *point.replicas, work, stage);
    const Picoseconds waits = waits_of(work, point, units, s);
    const Picoseconds input = m * (stage.forward.busy + stage.backward.busy);
    const Picoseconds reduces = point.features.gradient_reduce ? waits : std::max(waits, units.reduce);
    point.works[s] = input + m * stage.weight.busy + reduces;
    const Picoseconds head = stage.head + hops[s], tail = stage.tail + hops[s];
    // If backward is split, weight gradients may still run after all input gradients have reached the first stage.
    end = std::max(end, head + (work.splits ? input + waits : point.works[s]) + tail);
    point.on_device = std::max({point.on_device, units.reduce, units.gather, units.links, head + point.works[s]});
    if (work.units)
      point.on_device = std::max(point.on_device, units_end(units, work, stage, hops[s]) + time.updates[s]);
    way += work.virtual_stages[s].forward.to_result() + work.virtual_stages[s].way_back();
    if (s + 1 < p) way += 2 * (hops[s + 1] - hops[s]);
    end = std::max(end, end_of_rounds(work, s, way, hops[s]));
  }
  return std::max(end, point.works.front());
}

}  // namespace

TimeBound time_bound(LayoutCosts& costs, const CellWork& work) {
  const Space& space = costs.cache.space;
  const HostLoad load = host_load(space, work.cell, fewest_elements(work));
  const bool host = work.cell.memory_plan.offload != "none";
  TimeBound bound;
  for (const StageWork& s : work.stages)
    bound.updates.push_back(host ? load.update : update_time(costs.cache, own_elements(work.cell, s.weights)));
  bound.least_update = *std::min_element(bound.updates.begin(), bound.updates.end());
  const std::int64_t m = work.cell.micro_batches;
  for (const StageWork& s : work.stages) {
    const Picoseconds input = m * (s.forward.busy + s.backward.busy), all = input + m * s.weight.busy;
    const Picoseconds end = work.splits ? std::max(all, input + s.tail) : all + s.tail;
    bound.on_device = std::max({bound.on_device, s.head + end + bound.least_update, m * issue_of(s)});
  }
  bound.beside = through_host(space, work, load);
  bound.least = std::max(bound.on_device, bound.beside);
  return bound;
}

PointTime point_time(LayoutCosts& costs, const CellWork& work, const TimeBound& time, const Features& features) {
  const Strides at = strides_of(costs.layout, features.rank_order);
  PointTime point{.features = features, .replicas = &replicas_of(costs.cache, work.cell, at)};
  point.hops = hops_of(costs, work, at);
  const Picoseconds end = pipeline_end(costs.cache, work, time, point);
  for (std::size_t s = 0; s < work.stages.size(); ++s) {
    const StageWork& stage = work.stages[s];
    const Picoseconds done = s == 0 && work.cell.copies == 1 ? end : stage.head + point.hops.before[s] + point.works[s];
    point.on_device = std::max(
        {point.on_device, end + time.least_update, work.cell.micro_batches * issue_of(stage), done + time.updates[s]});
    if (!work.units) point.on_device = std::max(point.on_device, replicas_end(costs.cache, work, time, point, s, done));
  }
  return point;
}

Picoseconds replicas_end(BoundCache& cache, const CellWork& work, const TimeBound& time, const PointTime& point,
                         std::size_t s, Picoseconds done) {
  const Software& w = cache.space.base().software;
  const Strategy& strategy = cache.space.base().strategy;
  const ShardingRow& row = row_of(work.cell.memory_plan.sharding);
  const StageWork& stage = work.stages[s];
  const auto kind = scatters_gradients(row, w.communication.shards_all_reduce) ? CollectiveKind::reduce_scatter
                                                                               : CollectiveKind::all_reduce;
  const Bytes gradient = storage_bytes(strategy.gradient_precision);
  const Bytes width = w.communication.gathers_eight_bit ? 1 : storage_bytes(strategy.precision);
  const auto moves = [&](CollectiveKind what, Bytes bytes) {
    return transfer_time(cache, *point.replicas, what, bytes);
  };
  Picoseconds end = done;
  if (point.features.gradient_reduce) {
    const Picoseconds last = std::min(done, stage.backward.busy + stage.weight.busy);
    end = std::max(end, done - last + moves(kind, stage.weights.first_elements * gradient));
  } else {
    end += moves(kind, stage.weights.elements * gradient);
  }
  end += time.updates[s];
  if (!row.shards_optimizer) return end;
  if (!point.features.parameter_gather) return end + moves(CollectiveKind::all_gather, stage.weights.elements * width);
  if (work.cell.copies > 1) return end;  // it is unknown which copy of the model has its weights gathered first
  const Picoseconds gather = moves(CollectiveKind::all_gather, stage.weights.first_elements * width);
  const Picoseconds rest = point.works[s] - std::min(point.works[s], stage.forward.busy);
  const Picoseconds last_layer = work.cell.memory_plan.virtual_stages == 1 ? stage.last_forward : 0;
  return std::max(end, gather + last_layer + rest + (work.splits ? 0 : stage.tail + point.hops.before[s]));
}

// Recomputing a layer shortens none of its times, except that the last layer of a chunk may overlap more with the next
// pass.
std::optional<Picoseconds> may_fall(const CellWork& work) {
  const std::vector<BlockCost>&plain = work.plain->layers, &again = work.again->layers;
  Picoseconds fall = 0;
  const auto way_back = [](const BlockCost& layer) { return layer.backward.to_result() - layer.early; };
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (way_back(again[i]) < way_back(plain[i])) return std::nullopt;
  }
  for (const auto pass : {&BlockCost::forward, &BlockCost::backward, &BlockCost::weight}) {
    Picoseconds most = 0;
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const PassCost &a = plain[i].*pass, &b = again[i].*pass;
      if (b.to_result() < a.to_result() || b.through < a.through || b.busy < a.busy || b.issue < a.issue ||
          b.compute < a.compute || b.busy - b.free_overlap < a.busy - a.free_overlap ||
          b.through - b.free_overlap < a.through - a.free_overlap)
        return std::nullopt;
      most = std::max(most, (b.through - b.busy) - (a.through - a.busy));
    }
    fall += most;
  }
  return fall * work.cell.layout.micro_batches * work.cell.memory_plan.virtual_stages;
}

}  // namespace orrery
