#include "sim/search_space.h"

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "models/blocks.h"
#include "models/error.h"
#include "models/names.h"
#include "models/schedules.h"
#include "models/sharding.h"
#include "models/stages.h"

namespace orrery {
namespace {

constexpr std::array<std::string_view, 3> kContextKinds = {"ring", "allgather", "ulysses"};
constexpr std::array<std::string_view, 6> kOrders = {"tp-cp-dp-pp", "tp-cp-pp-dp", "tp-dp-cp-pp",
                                                     "tp-dp-pp-cp", "tp-pp-cp-dp", "tp-pp-dp-cp"};
constexpr std::int64_t kMostLayerPasses = 1'000'000;  // spec_check.cpp

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t i = 1; i * i <= n; ++i) {
    if (n % i != 0) continue;
    small.push_back(i);
    if (i != n / i) large.push_back(n / i);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

// What two values may come to the same is asked once.
std::vector<bool> both(const Choices<bool>& axis, bool useful, bool habit) {
  if (!useful) return {axis.open ? habit : axis.values.front()};
  std::vector<bool> values;
  for (const bool v : {true, false}) {
    if (axis.admits(v)) values.push_back(v);
  }
  return values;
}

struct Parse {
  const std::string& key;
  const std::string& from;

  void read(const std::string& text, std::int64_t& value) const {
    try {
      value = text == "null" ? -1 : std::stoll(text);
    } catch (const std::exception&) {
      throw Error(fmt::format("{}: search.{}: '{}' is not a whole number", from, key, text));
    }
  }
  void read(const std::string& text, bool& value) const {
    if (text != "true" && text != "false")
      throw Error(fmt::format("{}: search.{}: '{}' is neither true nor false", from, key, text));
    value = text == "true";
  }
  void read(const std::string& text, std::string& value) const { value = text; }
};

template <class T>
void restrict_to(Choices<T>& axis, const std::vector<std::string>& texts, const Parse& parse) {
  axis = {false, {}};
  for (const std::string& text : texts) {
    T value{};
    parse.read(text, value);
    axis.values.push_back(value);
  }
}

// The dimensions of an order that have more than one rank.
std::string told_apart(const Degrees& layout, std::string_view order) {
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

}  // namespace

Space::Space(OpenSpec open, std::int64_t gpus) : base_(std::move(open.spec)), gpus_(gpus) {
  if (gpus_ < 1 || gpus_ > gpus_of(base_.cluster))
    throw Error(fmt::format("--gpus: {} is not between 1 and the cluster's {}", gpus_, gpus_of(base_.cluster)));
  for (const Origin& origin : base_.origins) take_given(origin);
  for (const SearchRange& range : open.search) take_range(range);
  if (!batch_given_)
    throw Error(fmt::format("{}: strategy.global_batch: missing; a search needs the sequences of a step", base_.name));
  for (const std::string& name : schedule_.values) find_schedule(name);
  for (const std::string& name : sharding_.values) find_sharding(name);
}

// What the spec itself gives is fixed.
void Space::take_given(const Origin& origin) {
  constexpr std::string_view section = "strategy.";
  const bool given = origin.from == "--set" || origin.from.find(':') != std::string::npos;
  if (!origin.key.starts_with(section)) return;
  const std::string key = origin.key.substr(section.size());
  if (!given || origin.from.starts_with("profile ")) return;
  batch_given_ = batch_given_ || key == "global_batch";
  bucket_given_ = bucket_given_ || key == "bucket_MiB";
  const auto fixed = [&](auto& axis, auto value) { axis = {false, {value}}; };
  const Strategy& s = base_.strategy;
  if (key == "tensor") fixed(tensor_, s.tensor);
  if (key == "context") fixed(context_, s.context);
  if (key == "pipeline") fixed(pipeline_, s.pipeline);
  if (key == "data") fixed(data_, s.data);
  if (key == "expert") fixed(expert_, s.expert);
  if (key == "expert_tensor") fixed(expert_tensor_, s.expert_tensor);
  if (key == "virtual_stages") fixed(virtual_stages_, s.virtual_stages);
  if (key == "micro_batch") fixed(micro_batch_, s.micro_batch);
  if (key == "shard_group") fixed(shard_group_, s.shard_group);
  if (key == "recompute_layers") fixed(recompute_layers_, s.recompute.layers.value_or(-1));
  if (key == "schedule") fixed(schedule_, s.schedule);
  if (key == "sharding") fixed(sharding_, std::string(name_of(s.sharding)));
  if (key == "recompute") fixed(recompute_, origin.value);
  if (key == "context_kind") fixed(context_kind_, s.context_kind);
  if (key == "rank_order") fixed(rank_order_, s.rank_order);
  if (key == "sequence_parallel") fixed(sequence_parallel_, s.sequence_parallel);
  if (key == "overlap.gradient_reduce") fixed(gradient_reduce_, s.overlap.gradient_reduce);
  if (key == "overlap.parameter_gather") fixed(parameter_gather_, s.overlap.parameter_gather);
  if (key == "overlap.tensor") fixed(overlap_tensor_, s.overlap.tensor);
  if (key == "overlap.pipeline") fixed(overlap_pipeline_, s.overlap.pipeline);
  if (key == "overlap.expert") fixed(overlap_expert_, s.overlap.expert);
}

void Space::take_range(const SearchRange& range) {
  const Parse parse{range.key, range.from};
  const std::vector<std::pair<std::string_view, std::function<void()>>> axes = {
      {"tensor", [&] { restrict_to(tensor_, range.values, parse); }},
      {"context", [&] { restrict_to(context_, range.values, parse); }},
      {"pipeline", [&] { restrict_to(pipeline_, range.values, parse); }},
      {"data", [&] { restrict_to(data_, range.values, parse); }},
      {"expert", [&] { restrict_to(expert_, range.values, parse); }},
      {"expert_tensor", [&] { restrict_to(expert_tensor_, range.values, parse); }},
      {"virtual_stages", [&] { restrict_to(virtual_stages_, range.values, parse); }},
      {"micro_batch", [&] { restrict_to(micro_batch_, range.values, parse); }},
      {"shard_group", [&] { restrict_to(shard_group_, range.values, parse); }},
      {"recompute_layers", [&] { restrict_to(recompute_layers_, range.values, parse); }},
      {"schedule", [&] { restrict_to(schedule_, range.values, parse); }},
      {"sharding", [&] { restrict_to(sharding_, range.values, parse); }},
      {"recompute", [&] { restrict_to(recompute_, range.values, parse); }},
      {"context_kind", [&] { restrict_to(context_kind_, range.values, parse); }},
      {"rank_order", [&] { restrict_to(rank_order_, range.values, parse); }},
      {"sequence_parallel", [&] { restrict_to(sequence_parallel_, range.values, parse); }},
      {"overlap_gradient_reduce", [&] { restrict_to(gradient_reduce_, range.values, parse); }},
      {"overlap_parameter_gather", [&] { restrict_to(parameter_gather_, range.values, parse); }},
      {"overlap_tensor", [&] { restrict_to(overlap_tensor_, range.values, parse); }},
      {"overlap_pipeline", [&] { restrict_to(overlap_pipeline_, range.values, parse); }},
      {"overlap_expert", [&] { restrict_to(overlap_expert_, range.values, parse); }},
  };
  std::vector<std::string_view> known;
  for (const auto& [name, take] : axes) {
    known.push_back(name);
    if (name != range.key) continue;
    take();
    return;
  }
  throw Error(fmt::format("{}: search: {}", range.from, unknown_name("axis", range.key, known)));
}

// Rules of models/spec_check.cpp that a layout can break by itself; those about the model are asked of a small plan.
bool Space::valid(const Degrees& l) const {
  const Strategy& s = base_.strategy;
  if (s.global_batch % (l.micro_batch * l.data) != 0) return false;
  if (l.micro_batches > kMostLayerPasses / base_.model.layers) return false;
  const std::int64_t ranks = l.tensor * l.context * l.data, experts = l.expert * l.expert_tensor;
  return ranks % experts == 0;
}

std::vector<Degrees> Space::layouts() const {
  std::vector<Degrees> result;
  const Model& m = base_.model;
  const bool moe = m.moe.has_value();
  const auto with_batch = [&](Degrees l) {
    for (const std::int64_t b : divisors(std::max<std::int64_t>(1, base_.strategy.global_batch / l.data))) {
      l.micro_batch = b;
      l.micro_batches = base_.strategy.global_batch / l.data / b;
      if (micro_batch_.admits(b) && valid(l)) result.push_back(l);
    }
  };
  const auto with_overlap = [&](Degrees l) {
    const bool shared = moe && m.moe->shared_feed_forward > 0;
    for (const bool sequence : both(sequence_parallel_, l.tensor > 1, false)) {
      l.sequence_parallel = sequence;
      for (const bool tensor : both(overlap_tensor_, l.tensor > 1 && sequence, false)) {
        l.overlap_tensor = tensor;
        for (const bool expert : both(overlap_expert_, shared, false)) {
          l.overlap_expert = expert;
          with_batch(l);
        }
      }
    }
  };
  const auto with_experts = [&](Degrees l) {
    for (const std::int64_t e : moe ? divisors(m.moe->experts) : std::vector<std::int64_t>{1}) {
      for (const std::int64_t t : moe ? divisors(l.tensor) : std::vector<std::int64_t>{1}) {
        l.expert = e;
        l.expert_tensor = t;
        if (expert_.admits(e) && expert_tensor_.admits(t)) with_overlap(l);
      }
    }
  };
  for (const std::int64_t t : divisors(gpus_)) {
    if (!tensor_.admits(t) || m.heads % t != 0) continue;
    for (const std::int64_t c : divisors(gpus_ / t)) {
      if (!context_.admits(c) || base_.sequence % c != 0) continue;
      for (const std::int64_t p : divisors(gpus_ / t / c)) {
        const std::int64_t d = gpus_ / t / c / p;
        if (!pipeline_.admits(p) || p > m.layers + 2 || !data_.admits(d)) continue;
        Degrees l{.tensor = t, .context = c, .pipeline = p, .data = d};
        if (base_.strategy.global_batch % d != 0) continue;
        std::vector<std::string_view> kinds{"ring"};
        if (c > 1) kinds.assign(kContextKinds.begin(), kContextKinds.end());
        if (c > 1 && !context_kind_.open) kinds.assign(context_kind_.values.begin(), context_kind_.values.end());
        for (const std::string_view kind : kinds) {
          l.context_kind = kind;
          with_experts(l);
        }
      }
    }
  }
  return result;
}

std::int64_t Space::fullest_stage(std::int64_t pipeline, std::int64_t virtual_stages) const {
  Spec spec = base_;
  spec.origins.clear();
  spec.strategy.pipeline = pipeline;
  spec.strategy.virtual_stages = virtual_stages;
  const std::size_t stages = static_cast<std::size_t>(pipeline * virtual_stages);
  if (!base_.strategy.stage_layers.empty() && base_.strategy.stage_layers.size() != stages) return 0;
  try {
    const std::vector<std::int64_t> cut = stage_layers(spec);
    std::vector<std::int64_t> layers(pipeline, 0);
    for (std::size_t k = 0; k < cut.size(); ++k) layers[k % pipeline] += cut[k];
    return *std::max_element(layers.begin(), layers.end());
  } catch (const Error&) {
    return 0;
  }
}

void Space::add_schedules(const Degrees& l, std::vector<Recipe>& cells) const {
  const auto add = [&](std::string_view name, std::int64_t chunks) {
    const bool fits = chunks * l.pipeline <= base_.model.layers + 2;
    if (fits && virtual_stages_.admits(chunks)) cells.push_back({.schedule = name, .virtual_stages = chunks});
  };
  if (l.pipeline == 1) {
    if (schedule_.open || schedule_.values.size() > 1 || schedule_.values.front() != "file")
      add(schedule_.open || schedule_.admits("1f1b") ? "1f1b" : find_schedule(schedule_.values.front()).name, 1);
    return;
  }
  for (const ScheduleRow& row : schedule_rows()) {
    if (!schedule_.admits(std::string(row.name)) || (schedule_.open && row.name == "dapple")) continue;
    if (row.placement != ChunkPlacement::in_turn) {  // the bounds know stages in turn alone
      if (schedule_.open) continue;
      throw Error(
          fmt::format("strategy.schedule: search does not know {} yet; leave the key out or name another", row.name));
    }
    if (row.chunks == 1) {
      add(row.name, 1);
      continue;
    }
    if (!base_.software.uneven_interleaving && l.micro_batches % l.pipeline != 0) continue;
    for (std::int64_t v = 2; v * l.pipeline <= base_.model.layers + 2; ++v) add(row.name, v);
  }
}

std::vector<std::int64_t> Space::shard_groups(const Degrees& l) const {
  std::vector<std::int64_t> groups;
  for (const std::int64_t g : divisors(l.replicas())) {
    const bool other = g > 1 && g < l.replicas();  // else it is fsdp, or shards nothing
    if (shard_group_.open ? other : shard_group_.admits(g)) groups.push_back(g);
  }
  return groups;
}

void Space::add_shardings(const Degrees& l, const Recipe& cell, std::vector<Recipe>& cells) const {
  const bool splits = find_schedule(cell.schedule).splits;
  for (const ShardingRow& row : sharding_rows()) {
    if (!sharding_.admits(std::string(row.name))) continue;
    Spec spec;
    spec.software = base_.software;
    const bool units = unit_gradients(spec, row);
    if (units && splits) continue;
    // Alone, a rank shards nothing; gradients that stay whole until the end make zero2 the same as zero1.
    const bool repeats =
        row.shards_optimizer && !row.shards_parameters && (l.replicas() == 1 || (row.shards_gradients && !units));
    if (sharding_.open && repeats) continue;
    Recipe with = cell;
    with.sharding = row.kind;
    if (!row.hybrid) {
      cells.push_back(with);
      continue;
    }
    if (base_.model.moe) continue;  // not built (make_plan.cpp)
    for (const std::int64_t g : shard_groups(l)) {
      with.shard_group = g;
      cells.push_back(with);
    }
  }
}

std::vector<Recipe> Space::cells(const Degrees& l) const {
  std::vector<std::string_view> kinds;
  for (const std::string& kind : recompute_.values) kinds.push_back(kind);
  if (recompute_.open) {
    kinds = {"none", "selective", "full", "norm", "activation"};
    if (base_.model.moe) kinds.insert(kinds.end(), {"moe", "moe_activation"});
    if (!base_.model.moe || base_.model.moe->first_layer > 0 || base_.model.moe->every > 1) kinds.push_back("mlp");
    if (base_.model.mla) kinds.push_back("mla_up_proj");
  }
  std::vector<Recipe> ordered, result;
  add_schedules(l, ordered);
  std::int64_t before = 0, layers = 0;
  for (const Recipe& schedule : ordered) {
    if (schedule.virtual_stages != before) layers = fullest_stage(l.pipeline, schedule.virtual_stages);
    before = schedule.virtual_stages;
    if (layers == 0) continue;
    std::vector<Recipe> sharded;
    add_shardings(l, schedule, sharded);
    for (Recipe cell : sharded) {
      for (const std::string_view kind : kinds) {
        cell.recompute = kind;
        cell.recompute_layers = -1;
        if (recompute_layers_.admits(-1) || kind == "none") result.push_back(cell);
        for (std::int64_t r = 1; kind != "none" && r < layers; ++r) {
          cell.recompute_layers = r;
          if (recompute_layers_.admits(r)) result.push_back(cell);
        }
      }
    }
  }
  return result;
}

std::vector<Features> Space::features(const Degrees& l, const Recipe& cell) const {
  const Software& w = base_.software;
  const ShardingRow& row = row_of(cell.sharding);
  const bool group = l.replicas() > 1;
  std::vector<std::string_view> orders;
  std::vector<std::string> seen;
  std::vector<std::string_view> candidates(kOrders.begin(), kOrders.end());
  if (!rank_order_.open) candidates.assign(rank_order_.values.begin(), rank_order_.values.end());
  for (const std::string_view order : candidates) {
    std::string apart = told_apart(l, order);
    if (std::find(seen.begin(), seen.end(), apart) != seen.end()) continue;
    seen.push_back(std::move(apart));
    orders.push_back(order);
  }
  const bool reduces = group && (w.overlap_gradient_reduce || !gradient_reduce_.open);
  const bool gathers = group && row.shards_optimizer && (w.overlap_parameter_gather || !parameter_gather_.open);
  const bool sends = l.pipeline > 1 && (w.overlap_pipeline || !overlap_pipeline_.open);
  std::vector<Features> result;
  for (const std::string_view order : orders) {
    for (const bool reduce : both(gradient_reduce_, reduces, w.overlap_gradient_reduce)) {
      for (const bool gather : both(parameter_gather_, gathers, w.overlap_parameter_gather)) {
        for (const bool send : both(overlap_pipeline_, sends, w.overlap_pipeline))
          result.push_back({order, reduce, gather, send});
      }
    }
  }
  return result;
}

Strides strides_of(const Degrees& l, std::string_view order) {
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
