#pragma once

#include <string_view>
#include <vector>

#include "models/spec/strategy.h"

namespace orrery {

// A data-parallel variant, a row of the table in sharding.cpp, which begins with plain replicas: what it shards, and
// when it gathers and reduces. The planner reads the fields and knows no names.
struct ShardingRow {
  std::string_view name;
  std::string_view about;
  bool shards_optimizer = false;   // states and update are cut over the group; parameters are gathered after the update
  bool shards_gradients = false;   // a unit's gradient lives only until it is reduced
  bool shards_parameters = false;  // units are gathered before use
  bool reshards_after_forward = false;
  bool fp32_shards = false;  // FSDP: the shard is the fp32 master, cast before it is gathered
  bool hybrid = false;       // shards lie inside Strategy::shard_group; replicas are reduced over the rest
  bool master = false;       // one rank hands out inputs and weights, takes outputs and gradients, and alone updates
  bool servers = false;      // ranks of their own hold weights and update: gradients pushed, weights pulled
  // Names of the variant whose transfers and memory bound its own in a search, and which a hybrid one is over a single
  // group; and of the variant that it is with gradients on the host, which are reduced unit by unit. "": itself.
  std::string_view bounds = "", with_host_gradients = "";
  bool suggested = false;  // whether programs try it where parameters are whole
};

const std::vector<ShardingRow>& sharding_rows();

// Whether a rank reduces gradients that stay whole to its own shard of them. Some stacks sum all gradients on every
// rank in stage 1, where the optimizer's states alone are sharded: `stage_1_sums_all`.
inline bool scatters_gradients(const ShardingRow& row, bool stage_1_sums_all) {
  return row.shards_optimizer && (row.shards_gradients || !stage_1_sums_all);
}

// Whether fp32 master weights lie apart from the parameters, or from the shard of them: a host that updates has its
// own, unless it has the shards too; a device has its own beside narrower parameters.
bool masters_lie_apart(const Strategy& strategy, const ShardingRow& row);

const ShardingRow& row_of(Sharding s);
Sharding sharding_of(const ShardingRow& row);
Sharding find_sharding(std::string_view name);  // throws Error listing the known names
std::string_view name_of(Sharding s);
std::vector<std::string_view> sharding_names();
Sharding bounding(const ShardingRow& row);             // the variant that `bounds` names
Sharding with_host_gradients(const ShardingRow& row);  // the variant that `with_host_gradients` names

}  // namespace orrery
