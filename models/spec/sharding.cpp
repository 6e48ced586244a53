#include "models/spec/sharding.h"

#include "models/base/error.h"
#include "models/base/names.h"

namespace orrery {

const std::vector<ShardingRow>& sharding_rows() {
  // The table of the variants of sharding. ZeRO: Rajbhandari et al. 2020. FSDP: Zhao et al. 2023.
  static const std::vector<ShardingRow> rows = {
      {.name = "none", .about = "DDP: whole states on every rank, gradients all-reduced in buckets"},
      {.name = "zero1",
       .about = "optimizer sharded: gradients reduce-scattered, parameters gathered after the update",
       .shards_optimizer = true,
       .bounds = "none",
       .with_host_gradients = "zero2",
       .suggested = true},
      {.name = "zero2", .about = "as zero1, and gradients sharded", .shards_optimizer = true, .shards_gradients = true},
      {.name = "zero3",
       .about = "as zero2, and 16-bit parameters sharded: gathered before use",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .reshards_after_forward = true,
       .suggested = true},
      {.name = "fsdp",
       .about = "FULL_SHARD: fp32 shards, 16-bit copies gathered before use",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .reshards_after_forward = true,
       .fp32_shards = true},
      {.name = "fsdp-grad-op",
       .about = "SHARD_GRAD_OP: parameters stay gathered until backward",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .fp32_shards = true,
       .bounds = "fsdp",
       .with_host_gradients = "fsdp"},
      {.name = "hsdp",
       .about = "HYBRID_SHARD: FULL_SHARD inside a group, replicated over the groups",
       .shards_optimizer = true,
       .shards_gradients = true,
       .shards_parameters = true,
       .reshards_after_forward = true,
       .fp32_shards = true,
       .hybrid = true,
       .bounds = "fsdp",
       .with_host_gradients = "fsdp"},
      {.name = "data-parallel",
       .about = "DataParallel: rank 0 hands out inputs and weights, takes outputs and gradients, and alone updates",
       .master = true},
      {.name = "parameter-server",
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

const ShardingRow& row_of(Sharding s) { return sharding_rows().at(static_cast<std::size_t>(s)); }

Sharding sharding_of(const ShardingRow& row) { return static_cast<Sharding>(&row - sharding_rows().data()); }

Sharding find_sharding(std::string_view name) {
  for (const ShardingRow& row : sharding_rows()) {
    if (row.name == name) return sharding_of(row);
  }
  throw Error(unknown_name("sharding", name, sharding_names()));
}

std::string_view name_of(Sharding s) { return row_of(s).name; }

std::vector<std::string_view> sharding_names() {
  std::vector<std::string_view> names;
  for (const ShardingRow& row : sharding_rows()) names.push_back(row.name);
  return names;
}

Sharding bounding(const ShardingRow& row) { return row.bounds.empty() ? sharding_of(row) : find_sharding(row.bounds); }

Sharding with_host_gradients(const ShardingRow& row) {
  return row.with_host_gradients.empty() ? sharding_of(row) : find_sharding(row.with_host_gradients);
}

}  // namespace orrery
