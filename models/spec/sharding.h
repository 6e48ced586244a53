#pragma once

#include <string_view>
#include <vector>

#include "models/spec/strategy.h"

namespace orrery {

// A data-parallel variant (DDP, ZeRO, FSDP, ...), one row of the table in sharding.cpp, whose first row is unsharded
// data parallelism. A row says which states are sharded, and when parameters are gathered and gradients reduced. The
// planner reads these fields and never asks for the name.
struct ShardingRow {
  std::string_view name;
  std::string_view about;
  // whether optimizer states are sharded over the data parallel group, so that each rank updates a shard, and
  // parameters are gathered after the update
  bool shards_optimizer = false;
  bool shards_gradients = false;  // whether unsharded gradients are kept only until they are reduced to shards
  // whether parameters are sharded, and gathered before use unit by unit (a unit: the parameters of a layer, for
  // example)
  bool shards_parameters = false;
  bool reshards_after_forward = false;
  bool fp32_shards = false;  // whether the shards are fp32 master weights, cast before they are gathered (FSDP)
  // whether parameters are sharded over Strategy::shard_group ranks only; gradients are then also reduced over the
  // ranks with the same shard
  bool hybrid = false;
  // whether one rank (torch's DataParallel) hands out inputs and weights to the other ranks, collects outputs and
  // gradients, and alone updates the weights
  bool master = false;
  // whether separate ranks hold the weights and update them: workers push gradients and pull weights
  bool servers = false;
  // bounds: name of the variant whose transfers and memory are a lower bound of this one's in the search for the best
  // strategy; for a hybrid variant it is also the variant that it equals if there is only one shard group.
  // with_host_gradients: name of the variant that this one becomes if gradients are offloaded to the host, where they
  // are reduced unit by unit. "": the variant itself.
  std::string_view bounds = "", with_host_gradients = "";
  bool suggested = false;  // whether messages suggest this variant to users whose strategy shards less
};

const std::vector<ShardingRow>& sharding_rows();

// Returns whether gradients that are kept unsharded are reduce-scattered, so that a rank gets the sums of its own shard
// only. stage_1_sums_all: whether ZeRO stage 1, which shards only the optimizer states, all-reduces them instead, as
// some frameworks do.
inline bool scatters_gradients(const ShardingRow& row, bool stage_1_sums_all) {
  return row.shards_optimizer && (row.shards_gradients || !stage_1_sums_all);
}

// Returns whether fp32 master weights are a separate buffer from the parameters or their shard. A host that updates has
// its own master weights, unless the fp32 shards are offloaded to it too; a device has its own if parameters have fewer
// bits than master weights.
bool masters_lie_apart(const Strategy& strategy, const ShardingRow& row);

const ShardingRow& row_of(Sharding s);
Sharding sharding_of(const ShardingRow& row);
Sharding find_sharding(std::string_view name);  // throws Error listing the known names
std::string_view name_of(Sharding s);
std::vector<std::string_view> sharding_names();
// Returns the sharding that bounds this one from below in the search for the best strategy (ShardingRow::bounds).
Sharding bounding(const ShardingRow& row);
// Returns the sharding that this one becomes if gradients are offloaded to the host (ShardingRow::with_host_gradients).
Sharding with_host_gradients(const ShardingRow& row);

}  // namespace orrery
