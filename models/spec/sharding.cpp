#include "models/spec/sharding.h"

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

const std::vector<ShardingRow>& sharding_rows() {
  // ZeRO: Rajbhandari et al. 2020. FSDP: Zhao et al. 2023.
  static const std::vector<ShardingRow> rows = {
      {Sharding::none, "none", "DDP: whole states on every rank, gradients all-reduced in buckets"},
      {Sharding::zero1, "zero1", "optimizer sharded: gradients reduce-scattered, parameters gathered after the update",
       true},
      {Sharding::zero2, "zero2", "as zero1, and gradients sharded", true, true},
      {Sharding::zero3, "zero3", "as zero2, and 16-bit parameters sharded: gathered before use", true, true, true,
       true},
      {Sharding::fsdp, "fsdp", "FULL_SHARD: fp32 shards, 16-bit copies gathered before use", true, true, true, true,
       true},
      {Sharding::fsdp_grad_op, "fsdp-grad-op", "SHARD_GRAD_OP: parameters stay gathered until backward", true, true,
       true, false, true},
      {Sharding::hsdp, "hsdp", "HYBRID_SHARD: FULL_SHARD inside a group, replicated over the groups", true, true, true,
       true, true, true},
      {.kind = Sharding::data_parallel,
       .name = "data-parallel",
       .about = "DataParallel: rank 0 hands out inputs and weights, takes outputs and gradients, and alone updates",
       .master = true},
      {.kind = Sharding::parameter_server,
       .name = "parameter-server",
       .about = "sharded servers hold weights and update them: gradients pushed, weights pulled",
       .servers = true},
  };
  return rows;
}

bool masters_lie_apart(const Strategy& strategy, const ShardingRow& row) {
  const bool host_updates = strategy.offload.optimizer != Device::none;
  if (row.fp32_shards) return host_updates && strategy.offload.parameters == Device::none;
  return host_updates || storage_bytes(strategy.precision) < strategy.optimizer.master_bytes;
}

const ShardingRow& row_of(Sharding s) {
  for (const ShardingRow& row : sharding_rows()) {
    if (row.kind == s) return row;
  }
  throw Error(fmt::format("strategy.sharding: '{}' is not built yet; choose another", name_of(s)));
}

}  // namespace orrery
