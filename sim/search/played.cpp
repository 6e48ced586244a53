// Bounds: the order of the schedule, played.
#include <algorithm>

#include "models/partition/layers_of_stages.h"
#include "models/schedule/schedules.h"
#include "sim/search/bounds.h"

namespace orrery {

// The shape with which the planner asks for the schedule, without times.
ScheduleShape Bounds::shape() const {
  const Spec& base = space_.base();
  return {.stages = layout_.pipeline,
          .micro_batches = layout_.micro_batches,
          .chunks = cell_.virtual_stages,
          .times = {},
          .group = interleave_group(base, layout_.pipeline, layout_.micro_batches),
          .extra_warm_up = base.strategy.extra_warm_up};
}

// Whether closed forms know the turns of an interleaved schedule: those of Megatron-LM.
bool Bounds::in_usual_turns() const {
  const ScheduleShape s = shape();
  return !find_schedule(cell_.schedule).takes_turns ||
         (s.micro_batches % s.stages == 0 && s.group == s.stages && s.extra_warm_up == 0);
}

// Times of the stages as the planner adds them up (models/planner/order.cpp), so that the order is the same.
std::vector<PhaseTimes> Bounds::order_times() const {
  const std::int64_t places = std::ssize(cut_->layers), p = layout_.pipeline;
  const std::int64_t all = std::ssize(plain_->layers);
  const std::int64_t most = cell_.recompute == "none" ? 0 : cell_.recompute_layers < 0 ? all : cell_.recompute_layers;
  std::vector<std::int64_t> before(p, 0);
  std::vector<PhaseTimes> times;
  for (std::int64_t k = 0; k < places; ++k) {
    OrderLength forward, input, weight;
    const auto add = [&](const BlockCost& block) {
      if (!block.order_times) return;
      for (const OrderLength& t : block.order_times->forward) forward.add(t);
      for (const OrderLength& t : block.order_times->input) input.add(t);
      for (const OrderLength& t : block.order_times->weight) weight.add(t);
    };
    std::int64_t& layers_before = before[placed_.where.stage_of[k]];
    if (k == 0) add(plain_->embedding);
    for (std::int64_t i = 0; i < cut_->layers[k]; ++i)
      add((layers_before++ < most ? again_ : plain_)->layers[cut_->first[k] + i]);
    if (k + 1 == places) add(again_->head);
    times.push_back({forward.whole(), input.whole(), weight.whole()});
  }
  return times;
}

// Whether order_times() are those of the plan: costs of blocks are taken with tensor ranks beside each other, then
// context, then data ranks, and collectives of layers take other times where these lie otherwise.
bool Bounds::knows_order_times(const Features& f) const {
  if (!needs_times(cell_.schedule)) return true;
  const Strides lie = strides_of(layout_, f.rank_order);
  const bool tensor = layout_.tensor == 1 || lie.tensor == 1;
  const bool context = layout_.context == 1 || lie.context == layout_.tensor;
  const bool data = layout_.expert == 1 || lie.data == layout_.tensor * layout_.context;
  return tensor && context && data;
}

Bound Bounds::played(const Features& f) {
  Bound bound = of(f);
  if (!knows_order_times(f)) return bound;
  ScheduleShape with_times = shape();
  if (needs_times(cell_.schedule)) with_times.times = order_times();
  const KnownOrder* order = layout_.pipeline > 1 ? orders_.of(cell_.schedule, with_times) : nullptr;
  if (order == nullptr) return bound;
  if (needs_times(cell_.schedule)) bound.memory = std::max(bound.memory, memory_in(*order));
  Group& group = replicas(strides_of(layout_, f.rank_order));
  const std::vector<Picoseconds> ends = play(*order, virtual_stages_, boundary_hops_, !f.pipeline);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Picoseconds after = units_ ? unit_times(group, stages_[s]).after : 0;
    bound.time = std::max(bound.time, ends[s] + after + stages_[s].update);
    if (!units_) bound.time = std::max(bound.time, replicas_end(f, group, s, ends[s]));
  }
  return bound;
}

// Forwards are not shared where tensors are cut or cast in forward only if they will not run again, nor where the order
// fits times, which depend on backward too. Activations that leave make no forward shorter.
bool Bounds::forward_is_shared() const {
  const Spec& base = space_.base();
  return !base.strategy.partition_activations && !base.software.kernels.fp8_activation_inputs &&
         !base.software.kernels.packs_attention_output && !needs_times(cell_.schedule);
}

bool Bounds::runs_whole_stage_again() const {
  if (cell_.recompute == "none") return false;
  std::int64_t least = stages_.front().layers;
  for (const Stage& s : stages_) least = std::min(least, s.layers);
  return cell_.recompute_layers < 0 || cell_.recompute_layers >= least;
}

// The bound counts as done the forwards with which the order of the stage begins, the weights gathered for them, and a
// few units gathered ahead of the next passes.
Picoseconds Bounds::after_turn(const Features& f, std::int64_t s) {
  if (s < 0 || copies_ > 1 || woven_ || !knows_order_times(f)) return 0;
  Group& group = replicas(strides_of(layout_, f.rank_order));
  const KnownOrder* order = nullptr;
  if (layout_.pipeline > 1) {
    ScheduleShape with_times = shape();
    if (needs_times(cell_.schedule)) with_times.times = order_times();
    order = orders_.of(cell_.schedule, with_times);
    if (order == nullptr) return 0;
  }
  const Stage& stage = stages_[static_cast<std::size_t>(s)];
  const std::int64_t m = micro_batches_;
  Picoseconds work = m * (stage.forward.busy + stage.backward.busy + stage.weight.busy);
  Picoseconds hides = m * (stage.forward.hides + stage.backward.hides + stage.weight.hides);
  std::int64_t gathered = space_.base().strategy.prefetch_units + 1;
  const auto had = [&](std::int64_t k) {
    work -= virtual_stages_[k].forward.through;
    hides -= virtual_stages_[k].forward.hides;
    gathered += cut_->layers[k] + 2;  // with the blocks before and behind the layers
  };
  if (order == nullptr) had(0);
  for (std::size_t i = 0; order != nullptr && i < order->schedule.order[s].size(); ++i) {
    const Action& a = order->schedule.order[s][i];
    if (a.phase != Phase::forward) break;
    had(order->virtual_stage[s][a.chunk]);
  }
  const Picoseconds back = splits_ ? 0 : stage.tail + hops_[static_cast<std::size_t>(s)];
  if (!units_) return std::max(work + stage.update, work + back + least_update_);
  const UnitTimes units = unit_times(group, stage, gathered);
  return with_units(units, work, std::max<Picoseconds>(0, hides), std::max(back, units.after)) + least_update_;
}

}  // namespace orrery
