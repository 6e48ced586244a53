#include "sim/search/space.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/load/combinations.h"
#include "models/partition/layers_of_stages.h"
#include "models/schedule/schedules.h"
#include "models/spec/sequence.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 6> kOrders = {"tp-cp-dp-pp", "tp-cp-pp-dp", "tp-dp-cp-pp",
                                                     "tp-dp-pp-cp", "tp-pp-cp-dp", "tp-pp-dp-cp"};

}  // namespace

Space::Space(OpenSpec open, std::int64_t gpus)
    : base_(std::move(open.spec)), path_(std::move(open.path)), overrides_(std::move(open.overrides)), gpus_(gpus) {
  if (gpus_ < 1 || gpus_ > gpus_of(base_.cluster))
    throw Error(fmt::format("--gpus: {} is not between 1 and the cluster's {}", gpus_, gpus_of(base_.cluster)));
  if (base_.generation) throw Error(fmt::format("{}: generates text, of which layouts are searched, no steps", path_));
  refuse_combinations(base_, Limit::search);
  base_.gpus = gpus_;  // every strategy of the search runs on all of these GPUs
  for (const Origin& origin : base_.origins) take_given(origin);
  for (const SearchRange& range : open.search) take_range(range);
  find_offloads();
  if (!batch_given_)
    throw Error(fmt::format("{}: strategy.global_batch: missing; a search needs the sequences of a step", path_));
}

const std::vector<std::int64_t>& Space::Cuts::of(Known& list, Spec spec, std::int64_t pipeline,
                                                 std::int64_t virtual_stages) {
  const std::lock_guard lock(mutex);
  const auto [it, fresh] = list.try_emplace({pipeline, virtual_stages});
  if (!fresh) return it->second;
  spec.origins.clear();
  spec.strategy.pipeline = pipeline;
  spec.strategy.virtual_stages = virtual_stages;
  try {
    it->second = stage_layers(spec);
  } catch (const Error&) {
    return it->second;
  }
  if (std::ssize(it->second) != pipeline * virtual_stages) it->second.clear();
  return it->second;
}

const std::vector<std::int64_t>& Space::cut(std::int64_t pipeline, std::int64_t virtual_stages) const {
  return cuts_->of(cuts_->known, base_, pipeline, virtual_stages);
}

const std::vector<std::int64_t>& Space::second_cut(std::int64_t pipeline, std::int64_t virtual_stages) const {
  return cuts_->of(cuts_->second, second_spec(base_), pipeline, virtual_stages);
}

bool Space::can_cut_stages(std::int64_t pipeline, std::int64_t virtual_stages) const {
  return !cut(pipeline, virtual_stages).empty() && (!base_.second || !second_cut(pipeline, virtual_stages).empty());
}

// The largest number of layers on any stage; with two copies of the model (Chimera), counting the layers of one copy.
std::int64_t Space::fullest_stage(std::int64_t pipeline, const MemoryPlan& cell) const {
  const ScheduleShape shape = {.stages = pipeline, .chunks = cell.virtual_stages};
  const bool back = find_schedule(cell.schedule).placement == ChunkPlacement::v_shaped;
  const Schedule where = place_chunks(back ? ChunkPlacement::v_shaped : ChunkPlacement::in_turn, shape);
  std::vector<std::int64_t> layers(pipeline, 0);
  std::size_t k = 0;
  for (const std::int64_t n : cut(pipeline, cell.virtual_stages)) layers[where.stage_of[k++]] += n;
  return *std::max_element(layers.begin(), layers.end());
}

// Whether a schedule (row) is possible with the parallel degrees and the number of micro-batches of a RankLayout.
bool Space::runs(const RankLayout& l, const ScheduleRow& row) const {
  if (base_.second && (row.placement != ChunkPlacement::in_turn || row.copies > 1 || row.weaving == Weaving::always))
    return false;  // the planner has no second model in these (combinations.h)
  if (row.weaving == Weaving::always && l.micro_batches < 2 * l.pipeline) return false;
  if (row.chunks == 0 && !interleaves(base_, l.pipeline, l.micro_batches)) return false;
  if (row.placement != ChunkPlacement::both_ways) return true;
  return l.pipeline % 2 == 0 && l.micro_batches % 2 == 0 && gradient_reduce_.admits(false);
}

std::vector<MemoryPlan> Space::schedules(const RankLayout& l) const {
  std::vector<MemoryPlan> result;
  const auto add = [&](std::string_view name, std::int64_t chunks) {
    const bool fits = chunks * l.pipeline <= base_.model.layers + 2;
    if (fits && virtual_stages_.admits(chunks)) result.push_back({.schedule = name, .virtual_stages = chunks});
  };
  if (l.pipeline == 1) {
    const std::string_view plain = kPlainSchedule;
    add(schedule_.admits(std::string(plain)) ? plain : find_schedule(schedule_.values.front()).name, 1);
    return result;
  }
  for (const ScheduleRow& row : schedule_rows()) {
    if (!schedule_.admits(std::string(row.name)) || !runs(l, row) || !has_bounds(row)) continue;
    if (schedule_.open && row.searched == Searched::listed) continue;
    if (row.chunks > 0) add(row.name, row.chunks);
    for (std::int64_t v = 2; row.chunks == 0 && v * l.pipeline <= base_.model.layers + 2; ++v) add(row.name, v);
  }
  return result;
}

// Whether the planner (combinations.h) can reduce gradients unit by unit (as FSDP does) with these parallel degrees and
// this schedule.
bool Space::builds_units(const RankLayout& l, const ScheduleRow& schedule, const ShardingRow& row) const {
  if (schedule.placement == ChunkPlacement::both_ways && !reduces_in_one_order(l, schedule)) return false;
  if (schedule.placement != ChunkPlacement::in_turn && base_.model.mtp_layers > 0) return false;
  return !(schedule.weaving == Weaving::always && base_.model.tied_embeddings && row.shards_parameters);
}

std::vector<std::int64_t> Space::shard_groups(const RankLayout& l, const ShardingRow& hybrid) const {
  const bool has_whole = sharding_.admits(std::string(name_of(bounding(hybrid))));
  std::vector<std::int64_t> groups;
  for (const std::int64_t g : divisors(l.replicas())) {
    // A shard group of one rank shards nothing. A shard group of all ranks equals plain sharding (zero3), and is listed
    // only where the space does not have plain sharding.
    const bool other = g > 1 && (g < l.replicas() || !has_whole);
    if (shard_group_.open ? other : shard_group_.admits(g)) groups.push_back(g);
  }
  return groups;
}

void Space::add_shardings(const RankLayout& l, const MemoryPlan& cell, std::vector<MemoryPlan>& cells) const {
  const ScheduleRow& schedule = find_schedule(cell.schedule);
  const bool two = schedule.placement == ChunkPlacement::both_ways;  // mirror stages s, p-1-s hold the same weights
  for (const ShardingRow& row : sharding_rows()) {
    if (!sharding_.admits(std::string(row.name)) || row.master || row.servers) continue;
    const bool units = unit_gradients(base_, row);
    if (units && !builds_units(l, schedule, row)) continue;
    // zero2 makes the same plan as zero1 if gradients stay unsharded until the end of the step; without replicas both
    // make the plan without sharding.
    const bool repeats = row.shards_optimizer && !row.shards_parameters &&
                         ((l.replicas() == 1 && !two) || (row.shards_gradients && !units));
    if (sharding_.open && repeats) continue;
    MemoryPlan with = cell;
    with.sharding = sharding_of(row);
    const auto add = [&] {
      for (const std::string_view offload : offloads(l, with)) {
        MemoryPlan one = with;
        one.offload = offload;
        if (shards_nothing_here(l, one)) one.sharding = Sharding::none;
        if (std::find(cells.begin(), cells.end(), one) == cells.end()) cells.push_back(one);
      }
    };
    if (!row.hybrid) add();
    for (const std::int64_t g : row.hybrid ? shard_groups(l, row) : std::vector<std::int64_t>{}) {
      if (l.tensor * g % (l.expert * l.expert_tensor) != 0) continue;
      with.shard_group = g;
      add();
    }
  }
}

std::vector<std::string_view> Space::recompute_kinds() const {
  std::vector<std::string_view> kinds(recompute_.values.begin(), recompute_.values.end());
  if (!recompute_.open) return kinds;
  kinds = {"none", "selective", "full", "norm", "activation"};
  const auto& moe = base_.model.moe;
  if (moe) kinds.insert(kinds.end(), {"moe", "moe_activation"});
  if (experts_before(base_.model, base_.model.layers) < base_.model.layers) kinds.emplace_back("mlp");
  if (base_.model.mla) kinds.emplace_back("mla_up_proj");
  return kinds;
}

// How many layers of a stage to recompute, ascending. All layers are listed once, as -1, unless the spec fixes another
// number.
std::vector<std::int64_t> Space::recompute_numbers(std::int64_t layers) const {
  std::vector<std::int64_t> numbers, all;
  for (std::int64_t r = 1; recompute_layers_.open && r < layers; ++r) numbers.push_back(r);
  if (recompute_layers_.open) all.push_back(-1);
  for (const std::int64_t r : recompute_layers_.values) (r < 0 || r >= layers ? all : numbers).push_back(r);
  std::sort(numbers.begin(), numbers.end());
  if (!all.empty()) numbers.push_back(all.front());
  return numbers;
}

std::vector<MemoryPlan> Space::groups(const RankLayout& l) const {
  std::vector<MemoryPlan> result;
  for (const MemoryPlan& schedule : schedules(l)) {
    if (can_cut_stages(l.pipeline, schedule.virtual_stages)) add_shardings(l, schedule, result);
  }
  return result;
}

std::vector<MemoryPlan> Space::cells_of(const RankLayout& l, const MemoryPlan& group) const {
  const std::vector<std::int64_t> numbers = recompute_numbers(fullest_stage(l.pipeline, group));
  std::vector<MemoryPlan> result;
  for (const auto& [place, layers] : activation_places(group)) {
    for (const std::string_view kind : recompute_kinds()) {
      MemoryPlan cell = group;
      cell.activations = place;
      cell.activation_layers = layers;
      cell.recompute = kind;
      if (kind == "none") result.push_back(cell);
      for (const std::int64_t r : kind == "none" ? std::vector<std::int64_t>{} : numbers) {
        cell.recompute_layers = r;
        result.push_back(cell);
      }
    }
  }
  return result;
}

std::vector<MemoryPlan> Space::cells(const RankLayout& l) const {
  std::vector<MemoryPlan> result;
  for (const MemoryPlan& group : groups(l)) {
    const std::vector<MemoryPlan> cells = cells_of(l, group);
    result.insert(result.end(), cells.begin(), cells.end());
  }
  return result;
}

// Counts the strategies of a RankLayout without listing them. The number of choices of sharding depends only on the
// schedule's chunk placement and on whether passes overlap op by op; that of recomputation only on the layers of a
// stage; that of overlaps and order of ranks only on the sharding.
std::uint64_t Space::count(const RankLayout& l) const {
  std::uint64_t sum = 0, none = 0, some = 0;
  for (const std::string_view kind : recompute_kinds()) ++(kind == "none" ? none : some);
  // The number of choices of sharding, offload and Features (overlaps, order of ranks) with a schedule, counted once
  // for each key: (whether the schedule overlaps passes op by op, how it places chunks).
  std::map<std::pair<bool, ChunkPlacement>, std::optional<std::uint64_t>> sharded;
  for (const MemoryPlan& schedule : schedules(l)) {
    if (!can_cut_stages(l.pipeline, schedule.virtual_stages)) continue;
    const std::int64_t layers = fullest_stage(l.pipeline, schedule);
    const ScheduleRow& row = find_schedule(schedule.schedule);
    auto& shardings = sharded[{row.weaving == Weaving::always, row.placement}];
    if (!shardings) {
      shardings = 0;
      std::vector<MemoryPlan> cells;
      add_shardings(l, schedule, cells);
      for (const MemoryPlan& cell : cells) *shardings += features(l, cell).size();
      *shardings *= activation_places(schedule).size();
    }
    const auto numbers = recompute_layers_.open ? static_cast<std::size_t>(layers) : recompute_numbers(layers).size();
    sum += *shardings * (none + some * numbers);
  }
  return sum;
}

std::vector<std::string_view> Space::rank_orders(const RankLayout& l) const {
  std::vector<std::string_view> orders;
  std::vector<std::string> seen;
  std::vector<std::string_view> candidates(kOrders.begin(), kOrders.end());
  if (!rank_order_.open) candidates.assign(rank_order_.values.begin(), rank_order_.values.end());
  for (const std::string_view order : candidates) {
    std::string apart = effective_order(l, order);
    if (std::find(seen.begin(), seen.end(), apart) != seen.end()) continue;
    seen.push_back(std::move(apart));
    orders.push_back(order);
  }
  return orders;
}

std::vector<Features> Space::features(const RankLayout& l, const MemoryPlan& cell) const {
  const Software& w = base_.software;
  const ShardingRow& row = row_of(cell.sharding);
  const bool two = find_schedule(cell.schedule).placement == ChunkPlacement::both_ways;
  const bool group = l.replicas() > 1 || two;
  const bool habit =
      !two && reduces_beside(w, cell.sharding);  // two copies of a model reduce gradients only after the last backward
  const bool reduces = group && !two && (habit || !gradient_reduce_.open);
  const bool gathers =
      group && row.shards_optimizer && (w.communication.overlap_parameter_gather || !parameter_gather_.open);
  const bool sends = l.pipeline > 1 && (w.communication.overlap_pipeline || !overlap_pipeline_.open);
  std::vector<Features> result;
  for (const std::string_view order : rank_orders(l)) {
    for (const bool reduce : both(two ? Choices<bool>{false, {false}} : gradient_reduce_, reduces, habit)) {
      for (const bool gather : both(parameter_gather_, gathers, w.communication.overlap_parameter_gather)) {
        for (const bool send : both(overlap_pipeline_, sends, w.communication.overlap_pipeline))
          result.push_back({order, reduce, gather, send});
      }
    }
  }
  return result;
}

std::string effective_order(const RankLayout& layout, std::string_view order) {
  std::string result;
  for (std::size_t start = 0; start < order.size(); start += 3) {
    const std::string_view word = order.substr(start, 2);
    const std::int64_t degree = word == "tp"   ? layout.tensor
                                : word == "cp" ? layout.context
                                : word == "dp" ? layout.data
                                : word == "pp" ? layout.pipeline
                                               : 1;
    if (degree > 1) result += word;
  }
  return result;
}

Strides strides_of(const RankLayout& l, std::string_view order) {
  Strides result;
  std::int64_t stride = 1;
  for (std::size_t start = 0; start < order.size(); start += 3) {
    const std::string_view word = order.substr(start, 2);
    if (word == "tp") stride *= std::exchange(result.tensor, stride) > 0 ? l.tensor : 1;
    if (word == "cp") stride *= std::exchange(result.context, stride) > 0 ? l.context : 1;
    if (word == "dp") stride *= std::exchange(result.data, stride) > 0 ? l.data : 1;
    if (word == "pp") stride *= std::exchange(result.pipeline, stride) > 0 ? l.pipeline : 1;
  }
  return result;
}

}  // namespace orrery
