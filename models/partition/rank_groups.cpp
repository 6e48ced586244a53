#include "models/partition/rank_groups.h"

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"

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

// Returns groups of the ranks for which key(rank) is equal, numbered by their first rank. A table with an entry for
// every possible key finds the groups: a key is an integer of at most a few times the number of ranks.
template <typename Key>
GroupTable group_by(std::int64_t ranks, const Key& key) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(ranks));
  for (std::int64_t r = 0; r < ranks; ++r) keys[r] = key(r);
  std::vector<std::int32_t> group_of(static_cast<std::size_t>(*std::max_element(keys.begin(), keys.end()) + 1), -1);
  std::int32_t groups = 0;
  GroupTable table;
  table.member_of.reserve(keys.size());
  for (const std::int64_t k : keys) {
    std::int32_t& group = group_of[k];
    if (group < 0) group = groups++;
    table.member_of.push_back(group);
  }
  table.groups = GroupList(table.member_of, static_cast<std::size_t>(groups));
  return table;
}

// Returns for each rank its index, in rank order, among the ranks of its pool (a set of ranks); pools[r] is the number
// of rank r's pool.
std::vector<std::int64_t> places_in(const std::vector<std::int64_t>& pools) {
  std::map<std::int64_t, std::int64_t> next;
  std::vector<std::int64_t> places;
  places.reserve(pools.size());
  for (const std::int64_t pool : pools) places.push_back(next[pool]++);
  return places;
}

// Sets the groups of a grid: ranks of one tensor group, in all layers of the grid, that agree in two of their three
// coordinates.
void set_grid(const Strategy& s, const std::vector<Coordinates>& at, std::vector<GroupTable>& tables) {
  const std::int64_t q = s.on_grid() ? grid_side(s) : 0;
  const auto set = [&](Dimension d, std::int64_t stride) {
    tables[static_cast<std::size_t>(d)] = group_by(static_cast<std::int64_t>(at.size()), [&](std::int64_t r) {
      const Coordinates& c = at[r];
      if (q == 0) return r;
      const std::int64_t of_tensor = (c.data * s.context + c.context) * s.pipeline + c.pipeline;
      const std::int64_t side = stride == q * q ? s.tensor / stride : q;
      return of_tensor * s.tensor + c.tensor - c.tensor / stride % side * stride;
    });
  };
  set(Dimension::tensor_row, 1);
  set(Dimension::tensor_column, std::max<std::int64_t>(q, 1));
  set(Dimension::tensor_depth, std::max<std::int64_t>(q * q, 1));
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
                                      {"pp", {s.places(), &Coordinates::place}}};
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
  // for each position in the pipeline (one per replica of a stage), the index of its stage
  std::vector<std::int64_t> stage_at;
  for (std::int64_t stage = 0; stage < s.pipeline; ++stage)
    stage_at.insert(stage_at.end(), s.replicas_of(stage), stage);
  std::vector<Coordinates> all(s.gpus());
  for (std::int64_t r = 0; r < s.gpus(); ++r) {
    std::int64_t rest = r;
    for (const Axis& axis : order) {
      all[r].*axis.member = rest % axis.degree;
      rest /= axis.degree;
    }
    all[r].pipeline = stage_at[all[r].place];
    all[r].replica = all[r].place - s.first_position(all[r].pipeline);
  }
  return all;
}

std::vector<Dimension> tensor_axes(const Strategy& s) {
  if (!s.on_grid()) return {Dimension::tensor};
  if (!s.on_cube()) return {Dimension::tensor_row, Dimension::tensor_column};
  return {Dimension::tensor_row, Dimension::tensor_column, Dimension::tensor_depth};
}

std::vector<GroupTable> make_groups(const Strategy& s, bool sharded, bool hybrid, std::int64_t kv_copies, bool experts,
                                    std::int64_t node_ranks) {
  const std::vector<Coordinates> at = coordinates(s);
  const auto ranks = s.gpus();
  // replica() numbers the ranks of one pipeline position that have the same weights, one for each combination of data
  // index, context index and layer of a 2.5d grid, and returns the number of a rank. shards: the number of these ranks
  // that divide one set of shards among them.
  const std::int64_t face = s.tensor / s.tensor_depth;
  const auto tensor = [&](std::int64_t r) { return at[r].tensor % face; };
  const auto replica = [&](std::int64_t r) {
    return (at[r].data * s.tensor_depth + at[r].tensor / face) * s.context + at[r].context;
  };
  const std::int64_t shards = hybrid ? s.shard_group : s.data * s.context * s.tensor_depth;
  const auto model_part = [&](std::int64_t r) { return at[r].place * s.tensor + tensor(r); };
  // Returns a number that is equal for stages which hold the same weights. If a bidirectional schedule runs several
  // copies of the model, stages hold the same weights if their indices differ by a multiple of `distance`, and so do
  // stage i and its mirror image distance - 1 - i. With two copies `distance` is the number of stages.
  const std::int64_t copies = model_copies(s.schedule);
  const auto weights_of = [&](std::int64_t r) {
    if (copies == 1) return at[r].pipeline;
    const std::int64_t distance = std::max<std::int64_t>(1, 2 * s.pipeline / copies), place = at[r].pipeline % distance;
    return std::min(place, distance - 1 - place);
  };
  const std::int64_t places = s.places(), models = places * s.tensor;

  std::vector<GroupTable> tables(kDimensions);
  const auto set = [&](Dimension d, const auto& key) { tables[static_cast<std::size_t>(d)] = group_by(ranks, key); };
  set(Dimension::tensor, [&](std::int64_t r) { return replica(r) * places + at[r].place; });
  set(Dimension::context, [&](std::int64_t r) {
    return (at[r].data * s.context_ulysses + at[r].context % s.context_ulysses) * models + model_part(r);
  });
  set(Dimension::ulysses, [&](std::int64_t r) {
    return (at[r].data * s.context_ring + at[r].context / s.context_ulysses) * models + model_part(r);
  });
  // Experts are distributed over the ranks of a stage that share one set of shards.
  const std::int64_t sets = s.data * s.context * s.tensor_depth / shards, pool = ranks / places / sets;
  const auto set_of = [&](std::int64_t r) { return replica(r) / shards; };
  std::vector<std::int64_t> pools;
  for (std::int64_t r = 0; r < ranks; ++r) pools.push_back(at[r].place * sets + set_of(r));
  const std::vector<std::int64_t> place = places_in(pools);
  const std::int64_t block = s.expert * s.expert_tensor;
  const auto in_pool = [&](std::int64_t r, std::int64_t group) { return pools[r] * pool + group; };
  set(Dimension::expert_tensor, [&](std::int64_t r) { return in_pool(r, place[r] / s.expert_tensor); });
  set(Dimension::expert,
      [&](std::int64_t r) { return in_pool(r, place[r] / block * s.expert_tensor + place[r] % s.expert_tensor); });
  set(Dimension::expert_data,
      [&](std::int64_t r) { return experts ? (weights_of(r) * sets + set_of(r)) * pool + place[r] % block : r; });
  set(Dimension::expert_replicate, [&](std::int64_t r) { return experts ? at[r].place * pool + place[r] : r; });
  set(Dimension::replicate, [&](std::int64_t r) { return replica(r) % shards * models + model_part(r); });
  set(Dimension::pipeline,
      [&](std::int64_t r) { return s.row_parts() > 1 ? replica(r) : replica(r) * s.tensor + tensor(r); });
  const auto ends = [&](std::int64_t r) { return at[r].pipeline == 0 || at[r].pipeline == s.pipeline - 1; };
  const bool shares = spreads_vocabulary(s.schedule);
  set(Dimension::vocabulary, [&](std::int64_t r) { return shares ? replica(r) : r; });
  const auto ends_of = [&](std::int64_t r) {
    return s.ends_unlike() ? 0 : replica(r) * s.replicas_of(at[r].pipeline) + at[r].replica;
  };
  set(Dimension::embedding, [&](std::int64_t r) { return ends(r) ? ranks + ends_of(r) * s.tensor + tensor(r) : r; });
  set(Dimension::kv,
      [&](std::int64_t r) { return (replica(r) * places + at[r].place) * s.tensor + tensor(r) / kv_copies; });
  if (experts || copies > 1)
    set(Dimension::model, set_of);
  else
    set(Dimension::model, [&](std::int64_t r) { return sharded ? set_of(r) : replica(r); });
  const auto data_group = [&](std::int64_t r) {
    return replica(r) / shards * models + weights_of(r) * s.tensor + tensor(r);
  };
  set(Dimension::data, data_group);
  const std::int64_t nodes = node_ranks > 0 ? ceil_div(ranks, node_ranks) : 0;
  const auto in_node = [&](std::int64_t r) { return data_group(r) * nodes + r / node_ranks; };
  set(Dimension::data_in_node, [&](std::int64_t r) { return nodes > 0 ? in_node(r) : r; });
  std::vector<std::int64_t> of_node;
  for (std::int64_t r = 0; r < ranks; ++r) of_node.push_back(nodes > 0 ? in_node(r) : r);
  const std::vector<std::int64_t> seat = places_in(of_node);
  set(Dimension::data_over_nodes, [&](std::int64_t r) { return nodes > 0 ? data_group(r) * node_ranks + seat[r] : r; });
  set(Dimension::world, [](std::int64_t) { return std::int64_t{0}; });
  set(Dimension::hand_over, [](std::int64_t r) { return r; });
  set_grid(s, at, tables);
  return tables;
}

bool has_experts(const Spec& spec) { return spec.model.moe || (has_second_beside(spec) && spec.second->model.moe); }

static bool has_uneven_loads(const Model& model) {
  if (!model.moe) return false;
  const Moe& moe = *model.moe;
  const bool padded = moe.capacity_factor && moe.pad_to_capacity;
  return !padded && (moe.imbalance > 1 || (moe.zipf && *moe.zipf > 0) || !moe.loads_file.empty());
}

bool unevenly_loaded(const Spec& spec) {
  if (spec.strategy.expert == 1) return false;
  return has_uneven_loads(spec.model) || (has_second_beside(spec) && has_uneven_loads(spec.second->model));
}

bool shards_nothing(const Strategy& s, bool experts) {
  const ShardingRow& row = row_of(s.sharding);
  if (!row.shards_optimizer || row.fp32_shards || s.offload.any() || s.offload.tiling > 1) return false;
  const std::int64_t sharers = s.data * s.context * s.tensor_depth;
  const std::int64_t expert_sharers = experts ? s.tensor * s.context * s.data / (s.expert * s.expert_tensor) : 1;
  return sharers == 1 && expert_sharers == 1 && model_copies(s.schedule) == 1 && s.stage_replicas.empty();
}

}  // namespace orrery
