#include "models/groups.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "models/error.h"
#include "models/schedules.h"

namespace orrery {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '-')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// Ranks with the same key form a group; groups are numbered by their first rank. Keys are below a few times the ranks.
template <typename Key>
GroupTable group_by(std::int64_t ranks, const Key& key) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(ranks));
  for (std::int64_t r = 0; r < ranks; ++r) keys[r] = key(r);
  std::vector<std::int32_t> group_of(static_cast<std::size_t>(*std::max_element(keys.begin(), keys.end()) + 1), -1);
  std::vector<std::size_t> sizes;
  GroupTable table;
  table.member_of.reserve(keys.size());
  for (const std::int64_t k : keys) {
    std::int32_t& group = group_of[k];
    if (group < 0) {
      group = static_cast<std::int32_t>(sizes.size());
      sizes.push_back(0);
    }
    ++sizes[group];
    table.member_of.push_back(group);
  }
  table.groups.resize(sizes.size());
  for (std::size_t g = 0; g < sizes.size(); ++g) table.groups[g].reserve(sizes[g]);
  for (std::size_t r = 0; r < keys.size(); ++r)
    table.groups[table.member_of[r]].push_back(static_cast<std::int32_t>(r));
  return table;
}

// The number of each rank among those of its stage, in rank order.
std::vector<std::int64_t> places_in_stage(const std::vector<Coordinates>& at, std::int64_t stages) {
  std::vector<std::int64_t> next(stages, 0), places;
  for (const Coordinates& c : at) places.push_back(next[c.pipeline]++);
  return places;
}

}  // namespace

std::vector<Coordinates> coordinates(const Strategy& s) {
  struct Axis {
    std::int64_t degree;
    std::int64_t Coordinates::*member;
  };
  std::map<std::string, Axis> axes = {{"tp", {s.tensor, &Coordinates::tensor}},
                                      {"cp", {s.context, &Coordinates::context}},
                                      {"dp", {s.data, &Coordinates::data}},
                                      {"pp", {s.pipeline, &Coordinates::pipeline}}};
  std::vector<Axis> order;
  for (const std::string& name : split(s.rank_order)) {
    if (name == "ep") continue;
    const auto it = axes.find(name);
    if (it == axes.end()) {
      throw Error(
          fmt::format("strategy.rank_order: '{}' in '{}' is unknown or named twice; use each of tp-cp-ep-dp-pp once",
                      name, s.rank_order));
    }
    order.push_back(it->second);
    axes.erase(it);
  }
  for (const auto& [name, axis] : axes) {
    if (axis.degree > 1) throw Error(fmt::format("strategy.rank_order: '{}' leaves out {}", s.rank_order, name));
  }
  std::vector<Coordinates> all(s.gpus());
  for (std::int64_t r = 0; r < s.gpus(); ++r) {
    std::int64_t rest = r;
    for (const Axis& axis : order) {
      all[r].*axis.member = rest % axis.degree;
      rest /= axis.degree;
    }
  }
  return all;
}

std::vector<GroupTable> make_groups(const Strategy& s, bool sharded, bool hybrid, std::int64_t kv_copies,
                                    bool experts) {
  const std::vector<Coordinates> at = coordinates(s);
  const auto ranks = s.gpus();
  // Position among the replicas of a stage, and how many of them share shards.
  const auto replica = [&](std::int64_t r) { return at[r].data * s.context + at[r].context; };
  const std::int64_t shards = hybrid ? s.shard_group : s.data * s.context;
  const auto model_part = [&](std::int64_t r) { return at[r].pipeline * s.tensor + at[r].tensor; };
  // Stages that hold the same weights count as one.
  const bool both_ways = runs_both_ways(s.schedule);
  const auto weights_of = [&](std::int64_t r) {
    return both_ways ? std::min(at[r].pipeline, s.pipeline - 1 - at[r].pipeline) : at[r].pipeline;
  };
  const std::int64_t models = s.pipeline * s.tensor;

  std::vector<GroupTable> tables(kDimensions);
  const auto set = [&](Dimension d, const auto& key) { tables[static_cast<std::size_t>(d)] = group_by(ranks, key); };
  set(Dimension::tensor, [&](std::int64_t r) { return replica(r) * s.pipeline + at[r].pipeline; });
  set(Dimension::context, [&](std::int64_t r) {
    return (at[r].data * s.context_ulysses + at[r].context % s.context_ulysses) * models + model_part(r);
  });
  set(Dimension::ulysses, [&](std::int64_t r) {
    return (at[r].data * s.context_ring + at[r].context / s.context_ulysses) * models + model_part(r);
  });
  const std::vector<std::int64_t> place = places_in_stage(at, s.pipeline);
  const std::int64_t block = s.expert * s.expert_tensor, stage = ranks / s.pipeline;
  const auto in_stage = [&](std::int64_t r, std::int64_t group) { return at[r].pipeline * stage + group; };
  set(Dimension::expert_tensor, [&](std::int64_t r) { return in_stage(r, place[r] / s.expert_tensor); });
  set(Dimension::expert,
      [&](std::int64_t r) { return in_stage(r, place[r] / block * s.expert_tensor + place[r] % s.expert_tensor); });
  set(Dimension::expert_data, [&](std::int64_t r) { return experts ? weights_of(r) * stage + place[r] % block : r; });
  set(Dimension::data,
      [&](std::int64_t r) { return replica(r) / shards * models + weights_of(r) * s.tensor + at[r].tensor; });
  set(Dimension::replicate, [&](std::int64_t r) { return replica(r) % shards * models + model_part(r); });
  set(Dimension::pipeline, [&](std::int64_t r) { return replica(r) * s.tensor + at[r].tensor; });
  const auto ends = [&](std::int64_t r) { return at[r].pipeline == 0 || at[r].pipeline == s.pipeline - 1; };
  set(Dimension::embedding, [&](std::int64_t r) { return ends(r) ? replica(r) * s.tensor + at[r].tensor : ranks + r; });
  set(Dimension::kv,
      [&](std::int64_t r) { return (replica(r) * s.pipeline + at[r].pipeline) * s.tensor + at[r].tensor / kv_copies; });
  if (experts || both_ways)
    set(Dimension::model, [](std::int64_t) { return std::int64_t{0}; });
  else
    set(Dimension::model, [&](std::int64_t r) { return sharded ? replica(r) / shards : replica(r); });
  set(Dimension::world, [](std::int64_t) { return std::int64_t{0}; });
  return tables;
}

}  // namespace orrery
