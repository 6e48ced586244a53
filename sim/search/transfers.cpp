// Bounds: the least time that transfers between stages and among replicas add.
#include <algorithm>
#include <cmath>

#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/search/bounds.h"

namespace orrery {
namespace {

// Rates between two sampled sizes, which lie a fourth root of two apart, may be above the rates at the samples by this
// share.
constexpr double kSlack = 0.03;
constexpr double kLeastSample = 4096, kMostSample = 6.9e10;

}  // namespace

const NcclModel& Bounds::model(const std::vector<int>& spread) {
  const auto it = models_.find(spread);
  if (it != models_.end()) return it->second;
  const Spec& base = space_.base();
  return models_
      .emplace(spread,
               nccl_model(base.cluster, spread, {base.software.communication.nccl_minor, base.gpus}, profile_.nccl))
      .first->second;
}

// Most bytes per picosecond that the group reaches at any size.
double Bounds::best_rate(Group& group, CollectiveKind kind) {
  const auto [it, fresh] = group.rates.try_emplace(kind, 0);
  if (!fresh) return it->second;
  const NcclModel& members = model(group.spread);
  double best = 0;
  for (double bytes = kLeastSample; bytes < kMostSample; bytes *= std::sqrt(std::sqrt(2.0)))
    best = std::max(best, bytes / nccl_choose(members, kind, static_cast<Bytes>(bytes)).seconds);
  return it->second = best * (1 + kSlack) / kPicosecondsPerSecond;
}

// Every `step`-th of the ranks that hold the same weights, `size` in all, and how they lie on the nodes.
Bounds::Group& Bounds::group_of(const Strides& at, std::int64_t step, std::int64_t size) {
  const auto [it, fresh] =
      groups_.try_emplace({at.data, at.context, at.pipeline, step, size, layout_.data, layout_.context});
  if (!fresh) return it->second;
  const std::int64_t node = nccl_node_gpus(space_.base().cluster);
  const bool alike = at.pipeline % node == 0 || node % at.pipeline == 0 || layout_.pipeline == 1;
  if (size == 1 || !alike || !profile_.measured.transfers.empty()) return it->second;
  std::vector<std::int64_t> ranks;
  for (std::int64_t d = 0; d < layout_.data; ++d) {
    for (std::int64_t c = 0; c < layout_.context; ++c) ranks.push_back(d * at.data + c * at.context);
  }
  std::sort(ranks.begin(), ranks.end());
  std::int64_t last = -1;
  for (std::int64_t i = 0; i < size; ++i) {
    const std::int64_t rank = ranks[i * step];
    if (rank / node != last) it->second.spread.push_back(0);
    ++it->second.spread.back();
    last = rank / node;
  }
  it->second.channels = model(it->second.spread).graphs.collective_channels;
  return it->second;
}

// The group of ranks that share gradients and shards. Where two copies of the model run, stages that mirror each other
// are in one group, and no bound is given for it.
Bounds::Group& Bounds::replicas(const Strides& at) {
  const bool one = copies_ > 1;
  return group_of(at, 1, one ? 1 : cell_.shard_group > 0 ? cell_.shard_group : layout_.replicas());
}

Picoseconds Bounds::transfer(Group& group, CollectiveKind kind, Bytes bytes) {
  if (group.spread.empty()) return 0;
  return static_cast<Picoseconds>(static_cast<double>(bytes) / best_rate(group, kind));
}

// By how much a transfer slows the kernels beside it (price.cpp).
double Bounds::pressure(int channels) const {
  const double sms = space_.base().cluster.gpu.sms, taken = std::min<double>(channels, sms / 2);
  return sms > 0 ? taken / (sms - taken) * (1 + profile_.contention) : 0;
}

// The transfer of a layer's unit, which moves in one piece: the exact time when nothing runs beside it.
Bounds::Moved Bounds::unit_of_layer(Group& group, CollectiveKind kind, Bytes bytes) {
  if (group.spread.empty() || space_.base().model.moe) return {};
  const auto [it, fresh] = group.moved.try_emplace({kind, bytes});
  if (!fresh) return it->second;
  const NcclChoice c = nccl_choose(model(group.spread), kind, bytes);
  const Seconds whole = c.seconds + nccl_late_members(model(group.spread), kind);
  it->second = {picoseconds(whole), picoseconds(c.seconds * std::min(1.0, c.nic_share)),
                picoseconds(c.seconds * std::min(1.0, c.nvlink_share)), pressure(c.channels)};
  return it->second;
}

// Time to send the hidden states of a micro-batch from a stage to the next.
Picoseconds Bounds::send_time(bool near) {
  std::optional<Picoseconds>& known = sends_[near ? 1 : 0];
  if (known) return *known;
  known = 0;
  if (!profile_.measured.transfers.empty()) return 0;
  const Spec& spec = space_.base();
  const bool cut = layout_.sequence_parallel || spec.software.communication.scattered_sends != ScatteredSends::none;
  const std::int64_t rows = layout_.micro_batch * spec.sequence / layout_.context / (cut ? layout_.tensor : 1);
  const Bytes bytes = rows * spec.model.hidden * storage_bytes(spec.strategy.precision);
  const std::vector<int> pair = near ? std::vector<int>{2} : std::vector<int>{1, 1};
  known = picoseconds(nccl_point_to_point(model(pair), near, bytes).seconds);
  return *known;
}

// Finds the send times between every virtual stage and the next, and their sums before the first virtual stage of every
// stage.
void Bounds::find_hops(const Strides& at) {
  const std::vector<std::int32_t>& stage_of = placed_.where.stage_of;
  const std::int64_t node = nccl_node_gpus(space_.base().cluster), places = placed_.where.virtual_stages();
  boundary_hops_.assign(stage_of.size(), 0);
  for (std::size_t k = 0; k + 1 < stage_of.size(); ++k) {
    const std::int64_t a = stage_of[k], b = stage_of[k + 1];
    const bool between = a != b && static_cast<std::int64_t>(k + 1) % places != 0;
    if (between) boundary_hops_[k] = send_time(a * at.pipeline / node == b * at.pipeline / node);
  }
  hops_.assign(stages_.size(), 0);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    for (std::int64_t k = 0; k < stages_[s].first_place; ++k) hops_[s] += boundary_hops_[k];
  }
}

// Transfers of a stage's units in a step: sums of gradients, and gathers of weights before forward and backward.
// gathered: units of layers that have been gathered before.
Bounds::UnitTimes Bounds::unit_times(Group& group, const Stage& stage, std::int64_t gathered) {
  const Strategy& s = space_.base().strategy;
  const ShardingRow& row = row_of(cell_.sharding);
  const std::int64_t m = layout_.micro_batches;
  UnitTimes times;
  if (!units_ || group.spread.empty()) return times;
  const Bytes gradient = storage_bytes(s.gradient_precision), width = storage_bytes(s.precision);
  times.reduce = m * transfer(group, CollectiveKind::reduce_scatter, stage.elements * gradient);
  const std::int64_t again = row.reshards_after_forward ? stage.layer_elements : 0;  // gathered for backward too
  if (row.shards_parameters) {
    times.gather = m * transfer(group, CollectiveKind::all_gather, stage.elements * width);
    if (again > 0) times.gather += m * transfer(group, CollectiveKind::all_gather, again * width);
    if (gathered > 0) times.gather = 0;
  }
  if (stage.layers == 0 || stage.layer_elements % stage.layers != 0) return times;
  const std::int64_t layer = stage.layer_elements / stage.layers, n = m * stage.layers;
  const Moved sum = unit_of_layer(group, CollectiveKind::reduce_scatter, layer * gradient);
  const std::int64_t all = !row.shards_parameters ? 0 : again > 0 ? 2 * n : n;
  const std::int64_t gathers = std::max<std::int64_t>(0, all - gathered);
  const Moved weights = gathers > 0 ? unit_of_layer(group, CollectiveKind::all_gather, layer * width) : Moved{};
  times.reduce = std::max(times.reduce, n * sum.time);
  times.gather = std::max(times.gather, gathers * weights.time);
  times.pressure = sum.pressure + weights.pressure;
  times.least_pressure = gathers > 0 ? std::min(sum.pressure, weights.pressure) : sum.pressure;
  times.links = std::max(n * sum.nic + gathers * weights.nic, n * sum.nvlink + gathers * weights.nvlink);
  add_ends(times, group, stage, layer);
  return times;
}

// Adds the first gathers of a step and the last reductions, beside which nothing computes but the blocks before the
// first layer.
void Bounds::add_ends(UnitTimes& times, Group& group, const Stage& stage, std::int64_t layer) {
  const Strategy& s = space_.base().strategy;
  const bool gathers = row_of(cell_.sharding).shards_parameters, table = stage.first_place == 0;
  const Bytes gradient = storage_bytes(s.gradient_precision), width = storage_bytes(s.precision);
  const std::int64_t outer = table ? std::min(layer, plain_->embedding.elements) : layer;
  if (gathers) times.before = transfer(group, CollectiveKind::all_gather, outer * width);
  // The last chunk of a V may come last, and hold nothing but the blocks after the last layer.
  if (placed_.placement != ChunkPlacement::in_turn) return;
  times.after = transfer(group, CollectiveKind::reduce_scatter, outer * gradient);
  if (cut_->layers[stage.first_place] == 0) return;
  const std::int64_t first = cut_->first[stage.first_place];
  const BlockCost none, &ahead = table ? plain_->embedding : none;
  // Kernels beside the transfer are slowed; that time counts as work, and without kernels there is none.
  const auto both = [&](CollectiveKind kind, Bytes each, Picoseconds beside) {
    const Moved moved = unit_of_layer(group, kind, layer * each);
    const double slowed = static_cast<double>(beside) * (1 + std::max(moved.pressure, times.pressure));
    return transfer(group, kind, ahead.elements * each) + moved.time - static_cast<Picoseconds>(std::ceil(slowed));
  };
  if (gathers) times.before = std::max(times.before, both(CollectiveKind::all_gather, width, ahead.forward.through));
  if (splits_) return;
  const Picoseconds trails = std::max(plain_->layers[first].trails, again_->layers[first].trails);
  const Picoseconds beside = trails + ahead.backward.through;
  times.after = std::max(times.after, both(CollectiveKind::reduce_scatter, gradient, beside));
}

// Time of a stage whose units are gathered and reduced: work, the time that kernels lose to these transfers, and idle
// time. A part of the transfers may hide beside the rank's own transfers, which are in the work, and in idle time; the
// rest slows kernels, least where transfers overlap as little as the links allow.
Picoseconds Bounds::with_units(const UnitTimes& units, Picoseconds work, Picoseconds hides, Picoseconds idle) {
  constexpr double kLonger = 1.05;  // stretch of the own transfers that share a link
  const auto lost = [](double pressure) { return pressure / (1 + pressure); };
  const double moving = static_cast<double>(std::max({units.links, units.reduce, units.gather}));
  const double both = std::max(0.0, static_cast<double>(units.reduce + units.gather) - moving);
  const double one = std::max(0.0, moving - both);
  const double most = lost(units.pressure);
  const double hidden = static_cast<double>(hides) * kLonger * most;
  const double slowed = std::max(0.0, both * most + one * lost(units.least_pressure) - hidden);
  return work + static_cast<Picoseconds>(slowed + static_cast<double>(idle) * (1 - most));
}

// End of a stage whose units are gathered and reduced. Weight gradients of a split backward may fill the way back.
Picoseconds Bounds::units_end(const UnitTimes& units, const Stage& stage, std::size_t s) const {
  const std::int64_t m = micro_batches_;
  const Picoseconds back = splits_ ? 0 : stage.tail + hops_[s];
  const Picoseconds idle = std::max(stage.head + hops_[s], units.before) + std::max(back, units.after);
  const Picoseconds work = m * (stage.forward.busy + stage.backward.busy + stage.weight.busy);
  return with_units(units, work, m * (stage.forward.hides + stage.backward.hides + stage.weight.hides), idle) +
         stage.update;
}

// Fills works_ and hops_; returns the end of the first stage's last backward, and raises `bound` to the longest of the
// other lower bounds.
Picoseconds Bounds::pipeline_end(const Features& f, const Strides& at, Picoseconds& bound) {
  const std::int64_t m = micro_batches_, p = layout_.pipeline, v = cell_.virtual_stages;
  const bool in_turn = placed_.placement == ChunkPlacement::in_turn;
  const ScheduleRow& schedule = find_schedule(cell_.schedule);
  find_hops(at);
  works_.assign(p, 0);
  Group& group = replicas(at);
  Picoseconds way = 0, end = 0;  // way: time of forward and backward through this stage and the stages behind it
  for (std::int64_t s = p; s-- > 0;) {
    const Stage& stage = stages_[s];
    const UnitTimes units = unit_times(group, stage);
    Picoseconds waits = 0;
    if (!f.pipeline && p > 1 && in_turn)
      waits = (m * v - 1) * (s + 1 < p ? hops_[s + 1] - hops_[s] : hops_[s] - hops_[s - 1]);
    if (!f.parameter_gather) waits = std::max(waits, units.gather);
    Picoseconds input = m * (stage.forward.busy + stage.backward.busy);
    const Picoseconds reduces = f.gradient_reduce ? waits : std::max(waits, units.reduce);  // with weight gradients
    works_[s] = input + m * stage.weight.busy + reduces;
    input += waits;
    const Picoseconds head = stage.head + hops_[s], tail = stage.tail + hops_[s];
    // In a schedule that splits backward, weight gradients may still run when the first stage has all input gradients.
    end = std::max(end, head + (splits_ ? input : works_[s]) + tail);
    bound = std::max({bound, units.reduce, units.gather, units.links, head + works_[s]});
    if (units_) bound = std::max(bound, units_end(units, stage, s));
    way += virtual_stages_[s].forward.to_result() + virtual_stages_[s].way_back();
    if (s + 1 < p) way += 2 * (hops_[s + 1] - hops_[s]);
    if (schedule.in_flight == nullptr || v > 1) continue;
    const std::int64_t most = schedule.in_flight(p, s, m);
    const std::int64_t rounds = (m - 1) / most, rest = (m - 1) % most;
    end = std::max(end, head + rest * stage.forward.busy + (rounds + 1) * way + tail);
  }
  return std::max(end, works_.front());
}

// End of a stage whose gradients stay whole until the last micro-batch: they are reduced when the last backward has
// ended, and under sharding the weights are gathered after the update or before the first forward of the next step.
// done: end of the last backward.
Picoseconds Bounds::replicas_end(const Features& f, Group& group, std::size_t s, Picoseconds done) {
  const Software& w = space_.base().software;
  const Strategy& strategy = space_.base().strategy;
  const ShardingRow& row = row_of(cell_.sharding);
  const Stage& stage = stages_[s];
  const auto kind = scatters_gradients(row, w.communication.shards_all_reduce) ? CollectiveKind::reduce_scatter
                                                                               : CollectiveKind::all_reduce;
  const Bytes gradient = storage_bytes(strategy.gradient_precision);
  const Bytes width = w.communication.gathers_eight_bit ? 1 : storage_bytes(strategy.precision);
  Picoseconds end = done;
  if (f.gradient_reduce) {
    const Picoseconds last = std::min(done, stage.backward.busy + stage.weight.busy);
    end = std::max(end, done - last + transfer(group, kind, stage.first_elements * gradient));
  } else {
    end += transfer(group, kind, stage.elements * gradient);
  }
  end += stage.update;
  if (!row.shards_optimizer) return end;
  if (!f.parameter_gather) return end + transfer(group, CollectiveKind::all_gather, stage.elements * width);
  const Picoseconds gather = transfer(group, CollectiveKind::all_gather, stage.first_elements * width);
  const Picoseconds rest = works_[s] - std::min(works_[s], stage.forward.busy);
  const Picoseconds last_layer = cell_.virtual_stages == 1 ? stage.last_forward : 0;
  return std::max(end, gather + last_layer + rest + (splits_ ? 0 : stage.tail + hops_[s]));
}

Bound Bounds::of(const Features& f) {
  const Picoseconds time = on_device(f);
  return {std::max(beside_, time), memory_with(f, replicas(strides_of(layout_, f.rank_order)))};
}

Picoseconds Bounds::on_device(const Features& f) {
  const Strides at = strides_of(layout_, f.rank_order);
  Group& group = replicas(at);
  Picoseconds time = 0;
  const Picoseconds end = pipeline_end(f, at, time);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const Stage& stage = stages_[s];
    const Picoseconds issue = stage.forward.issue + stage.backward.issue + stage.weight.issue;
    const Picoseconds done = s == 0 && copies_ == 1 ? end : stage.head + hops_[s] + works_[s];
    time = std::max({time, end + least_update_, micro_batches_ * issue, done + stage.update});
    if (!units_) time = std::max(time, replicas_end(f, group, s, done));
  }
  return time;
}

}  // namespace orrery
