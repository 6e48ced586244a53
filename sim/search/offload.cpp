// The part of class Space (the search space of strategies) that decides which states and activations may be on the host
// or on disks.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/layers/blocks.h"
#include "models/spec/sharding.h"
#include "sim/search/space.h"

namespace orrery {
namespace {

// The name of an offloaded part of the states, such as the optimizer's: "optimizer" if on the host, "optimizer:nvme" if
// on disks.
std::string with_tier(std::string_view part, MemoryTier tier) {
  return behind_host(tier) ? fmt::format("{}:{}", part, row_of(tier).in_spec) : std::string(part);
}

// The memory tier that a name such as "optimizer:nvme" (offload_names()) gives to a part of the states.
MemoryTier tier_in(std::string_view name, std::string_view part) {
  const std::size_t at = name.find(part);
  if (at == std::string_view::npos) return MemoryTier::device;
  const std::string_view rest = name.substr(at + part.size());
  if (!rest.starts_with(':')) return MemoryTier::host;
  return tier_in_spec(rest.substr(1, rest.find('+') - 1)).value_or(MemoryTier::device);
}

std::string name_of_offload(MemoryTier optimizer, MemoryTier gradients, MemoryTier parameters) {
  std::string name;
  for (const auto& [part, place] :
       {std::pair{"optimizer", optimizer}, std::pair{"gradients", gradients}, std::pair{"parameters", parameters}}) {
    if (place == MemoryTier::device) continue;
    name += (name.empty() ? "" : "+") + with_tier(part, place);
  }
  return name.empty() ? "none" : name;
}

}  // namespace

const std::vector<std::string_view>& offload_names() {
  static const std::vector<std::string> kept = [] {
    std::vector<std::string> names{"none"};
    const auto tier = [](std::size_t i) { return static_cast<MemoryTier>(i); };
    for (std::size_t o = 1; o < kTiers; ++o) {
      for (std::size_t p = 0; p < kTiers; ++p) {
        for (std::size_t g = 0; g < kTiers; ++g) names.push_back(name_of_offload(tier(o), tier(g), tier(p)));
      }
    }
    return names;
  }();
  static const std::vector<std::string_view> names(kept.begin(), kept.end());
  return names;
}

void set_offload(Offload& o, std::string_view name) {
  o.optimizer = tier_in(name, "optimizer");
  o.gradients = tier_in(name, "gradients");
  o.parameters = tier_in(name, "parameters");
}

void set_activations(Offload& o, const MemoryPlan& cell) {
  o.activations = tier_in_spec(cell.activations).value_or(MemoryTier::device);
  o.activation_layers.reset();
  if (o.activations != MemoryTier::device && cell.activation_layers > 0) o.activation_layers = cell.activation_layers;
}

std::vector<std::string> offload_overrides(const MemoryPlan& cell) {
  Offload o;
  set_offload(o, cell.offload);
  set_activations(o, cell);
  std::vector<std::string> list;
  for (const auto& [key, place] : {std::pair{"optimizer", o.optimizer}, std::pair{"gradients", o.gradients},
                                   std::pair{"parameters", o.parameters}, std::pair{"activations", o.activations}}) {
    if (place != MemoryTier::device) list.push_back(fmt::format("strategy.offload.{}={}", key, row_of(place).in_spec));
  }
  if (o.activation_layers) list.push_back(fmt::format("strategy.offload.activations.layers={}", *o.activation_layers));
  return list;
}

std::string offload_text(const MemoryPlan& cell) {
  std::string text;
  for (std::size_t i = 1; i < kTiers; ++i) {
    const auto tier = static_cast<MemoryTier>(i);
    std::vector<std::string> parts;
    for (const char* part : {"optimizer", "gradients", "parameters"}) {
      if (tier_in(cell.offload, part) == tier) parts.emplace_back(part);
    }
    if (tier_in_spec(cell.activations) == tier)
      parts.push_back(cell.activation_layers > 0
                          ? fmt::format("activations of {} layers a stage", cell.activation_layers)
                          : "activations");
    if (!parts.empty()) text += fmt::format(", {} on the {}", fmt::join(parts, "+"), row_of(tier).about);
  }
  return text;
}

// Fixes a key of `offload` to the value that the spec gives: the memory tier of a part of the states or of activations,
// or the number of layers with offloaded activations.
void Space::take_offload(std::string_view key) {
  const Offload& o = base_.strategy.offload;
  const std::string_view part = key.substr(0, key.find('.'));
  if (key == "activations.layers")
    activation_layers_ = {false, {o.activation_layers.value_or(-1)}};
  else if (part == "activations")
    activations_ = {false, {std::string(row_of(o.activations).in_spec)}};
  else if (part == "optimizer")
    optimizer_place_ = {false, {o.optimizer}};
  else if (part == "gradients")
    gradients_place_ = {false, {o.gradients}};
  else if (part == "parameters")
    parameters_place_ = {false, {o.parameters}};
}

// Decides which offload is tried although the spec does not list it. Offloading makes no step shorter: where the GPUs'
// memory holds four times all states of mixed precision (18 bytes a parameter), states are offloaded to the host only
// if the spec asks for it. Disks are slower than the host's memory in every way: where the hosts' memory holds all
// states, states are offloaded to disks only if the spec asks for it.
void Space::find_unlisted() {
  const Cluster& c = base_.cluster;
  const double states = 18.0 * static_cast<double>(parameter_count(base_.model, base_.sequence));
  const auto held = [](Bytes each, std::int64_t count) {
    return static_cast<double>(each) * static_cast<double>(count);
  };
  const bool o = optimizer_place_.open, g = gradients_place_.open, p = parameters_place_.open;
  host_unlisted_ = offload_.open && o && g && p && held(c.gpu.memory_bytes, gpus_) >= 4 * states;
  const bool hosts = host_unlisted_ || (c.host && held(c.host->dram_bytes, c.nodes) >= states);
  const bool any = std::any_of(c.stores.begin(), c.stores.end(), [](const auto& store) { return store.has_value(); });
  disks_unlisted_ = offload_.open && (o || g || p) && any && hosts;
}

// Finds which values of offload_names() the spec and the cluster allow.
void Space::find_offloads() {
  Offload& o = base_.strategy.offload;
  const Cluster& c = base_.cluster;
  find_unlisted();
  const auto fits = [&](const Choices<MemoryTier>& given, MemoryTier place) {
    const bool unlisted = place == MemoryTier::host ? host_unlisted_ : behind_host(place) && disks_unlisted_;
    return given.admits(place) && (!unlisted || !given.open);
  };
  for (const std::string_view name : offload_names()) {
    Offload away = o;
    set_offload(away, name);
    const auto described = [&](MemoryTier tier) { return !behind_host(tier) || store_of(c, tier); };
    const bool has = c.host && c.gpu.memory_bytes > 0 && c.gpu.pcie_GBps > 0 && described(away.optimizer) &&
                     described(away.gradients) && described(away.parameters);
    const bool in_time = !o.delayed_update || (away.optimizer == MemoryTier::host && !behind_host(away.gradients) &&
                                               away.parameters == MemoryTier::device);
    const bool admitted = offload_.admits(std::string(name)) && fits(optimizer_place_, away.optimizer) &&
                          fits(gradients_place_, away.gradients) && fits(parameters_place_, away.parameters);
    // The planner keeps no weights on disks beside a second model (combinations.h).
    const bool built = !base_.second || !behind_host(away.parameters);
    if (admitted && built && (name == "none" || has) && in_time) offloads_.emplace_back(name, away);
  }
  // Offload of activations is tried only where the spec lists it: with it, a search that takes a minute takes many
  // minutes.
  activations_unlisted_ = activations_.open;
  if (activations_.open) activations_ = {false, {"none"}};
  // These values of the spec are placeholders: each strategy of the search sets its own offload.
  o.optimizer = o.gradients = o.parameters = o.activations = MemoryTier::device;
  o.activation_layers.reset();
}

bool Space::offloads_gradients() const {
  return std::any_of(offloads_.begin(), offloads_.end(),
                     [](const auto& named) { return named.second.gradients != MemoryTier::device; });
}

// The choices of offloaded states (offload_names()) that the table of refused combinations (combinations.h) allows with
// this memory plan.
std::vector<std::string_view> Space::offloads(const RankLayout& l, const MemoryPlan& cell) const {
  const ShardingRow& row = row_of(cell.sharding);
  const ScheduleRow& schedule = find_schedule(cell.schedule);
  const bool alone = l.replicas() == 1, sharded = unit_gradients(base_, row);
  // Gradients on the host are reduced unit by unit, so that one ZeRO variant becomes another (zero1 becomes zero2). If
  // the search space lists that other variant too, gradients are not offloaded with this one: the plan would be the
  // same.
  const ShardingRow& other = row_of(with_host_gradients(row));
  const bool repeats = &other != &row && !row.shards_parameters && sharding_.admits(std::string(other.name)) &&
                       unit_gradients(base_, other);
  std::vector<std::string_view> result;
  for (const auto& [name, away] : offloads_) {
    const bool gradients = away.gradients != MemoryTier::device, units = sharded || gradients;
    const bool disk = behind_host(away.optimizer) || behind_host(away.gradients) || behind_host(away.parameters);
    const bool copies = base_.software.communication.gradient_average == Averaging::copy && !alone && !units;
    const bool built = (!units || builds_units(l, schedule, row)) && (row.shards_optimizer || alone) && !copies &&
                       !(disk && row.fp32_shards) && !(gradients && repeats) &&
                       (away.parameters == MemoryTier::device || row.shards_parameters);
    if (name == "none" || built) result.push_back(name);
  }
  return result;
}

// The choices for the memory tier of activations with this group of memory plans: each a tier, and the number of layers
// of a stage whose activations are there (kAsNeeded: the fewest that let the strategy fit).
std::vector<std::pair<std::string_view, std::int64_t>> Space::activation_places(const MemoryPlan& group) const {
  const Cluster& c = base_.cluster;
  const bool two = find_schedule(group.schedule).placement == ChunkPlacement::both_ways;
  const bool can = c.gpu.memory_bytes > 0 && c.gpu.pcie_GBps > 0 && !two && !base_.strategy.contiguous_activations;
  std::vector<std::pair<std::string_view, std::int64_t>> result;
  for (const std::string_view place : kActivationPlaces) {
    const MemoryTier tier = tier_in_spec(place).value_or(MemoryTier::device);
    const bool built = place == "none" || (can && (!behind_host(tier) || store_of(c, tier)));
    if (!built || !activations_.admits(std::string(place))) continue;
    if (place == "none" || activation_layers_.open) result.emplace_back(place, place == "none" ? -1 : kAsNeeded);
    for (const std::int64_t n : place == "none" ? std::vector<std::int64_t>{} : activation_layers_.values)
      result.emplace_back(place, n);
  }
  return result;
}

}  // namespace orrery
