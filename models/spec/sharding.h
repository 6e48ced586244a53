#pragma once

#include <string_view>
#include <vector>

#include "models/spec/strategy.h"

namespace orrery {

// A data-parallel variant (DDP, ZeRO, FSDP, ...), a row of the table in sharding.cpp, which begins with plain replicas:
// which states it shards, and when it gathers and reduces. The planner reads the fields and never asks for the name.
struct ShardingRow {
  std::string_view name;
  std::string_view about;
  // States and update are sharded over the group; parameters are gathered after the update
  bool shards_optimizer = false;
  bool shards_gradients = false;   // a unit's gradient lives only until it is reduced
  bool shards_parameters = false;  // units are gathered before use
  bool reshards_after_forward = false;
  bool fp32_shards = false;  // FSDP: the shard is the fp32 master, cast before it is gathered
  // Shards lie inside Strategy::shard_group; gradients are also reduced over the other groups
  bool hybrid = false;
  bool master = false;   // one rank hands out inputs and weights, takes outputs and gradients, and alone updates
  bool servers = false;  // separate ranks hold weights and update: gradients pushed, weights pulled
  // bounds: the variant whose transfers and memory are a lower bound of this one's in a search, and which a hybrid one
  // equals over a single group. with_host_gradients: the variant that this one becomes with gradients on the host,
  // which are reduced unit by unit. "": itself.
  std::string_view bounds = "", with_host_gradients = "";
  bool suggested = false;  // whether programs suggest it where parameters are whole
};

const std::vector<ShardingRow>& sharding_rows();

// Whether a rank reduces gradients that stay whole only to its own shard of them. In stage 1, where only the
// optimizer's states are sharded, some stacks sum all gradients on every rank: `stage_1_sums_all`.
inline bool scatters_gradients(const ShardingRow& row, bool stage_1_sums_all) {
  return row.shards_optimizer && (row.shards_gradients || !stage_1_sums_all);
}

// Whether fp32 master weights are a separate buffer from the parameters or their shard: a host that updates has its
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
