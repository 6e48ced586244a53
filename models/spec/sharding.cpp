#include "models/spec/sharding.h"

#include <fmt/format.h>

#include "models/base/error.h"

namespace orrery {

const std::vector<ShardingRow>& sharding_rows() {
  // ZeRO: Rajbhandari et al. 2020. FSDP: Zhao et al. 2023.
  static const std::vector<ShardingRow> rows = {
      {.kind = Sharding::none,
       .name = "none",
       .about = "DDP: whole states on every rank, gradients all-reduced in buckets"},
      {.kind = Sharding::zero1,
       .name = "zero1",
       .about = "optimizer sharded: gradients reduce-scattered, parameters gathered after the update",
       .shards_optimizer = true,
       .bounds = Sharding::none,
       .with_host_gradients = Sharding::zero2,
       .suggested = true},
      {.kind = Sharding::zero2,
       .name = "zero2",
       .about = "as zero1, and gradients sharded",
       .shards_optimizer = true,
       .shards_gradients = true},
      {.kind = Sharding::zero3,
       .name = "zero3",
       .about = "as zero2, and 16-bit parameters sharded: gathered before use",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .reshards_after_forward = true,
       .suggested = true},
      {.kind = Sharding::fsdp,
       .name = "fsdp",
       .about = "FULL_SHARD: fp32 shards, 16-bit copies gathered before use",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .reshards_after_forward = true,
       .fp32_shards = true},
      {.kind = Sharding::fsdp_grad_op,
       .name = "fsdp-grad-op",
       .about = "SHARD_GRAD_OP: parameters stay gathered until backward",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .fp32_shards = true,
       .bounds = Sharding::fsdp,
       .with_host_gradients = Sharding::fsdp},
      {.kind = Sharding::hsdp,
       .name = "hsdp",
       .about = "HYBRID_SHARD: FULL_SHARD inside a group, replicated over the groups",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .reshards_after_forward = true,
       .fp32_shards = true,
       .hybrid = true,
       .bounds = Sharding::fsdp,
       .with_host_gradients = Sharding::fsdp},
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
  const bool host_updates = strategy.offload.optimizer != MemoryTier::device;
  if (row.fp32_shards) return host_updates && strategy.offload.parameters == MemoryTier::device;
  return host_updates || storage_bytes(strategy.precision) < strategy.optimizer.master_bytes;
}

const ShardingRow& row_of(Sharding s) {
  for (const ShardingRow& row : sharding_rows()) {
    if (row.kind == s) return row;
  }
  throw Error(fmt::format("strategy.sharding: '{}' is not built yet; choose another", name_of(s)));
}

}  // namespace orrery
