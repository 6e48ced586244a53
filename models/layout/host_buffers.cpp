#include "models/layout/host_buffers.h"

#include <algorithm>

namespace orrery {

void add_staging(const Draft& draft, Block& block, std::int64_t shard) {
  const Offload& o = draft.facts.spec.strategy.offload;
  const Bytes gradients = shard * draft.facts.gradient_width;
  block.buffers.push_back({"reduced gradients", draft.facts.host_gradients() ? gradients : 0, Category::gradients});
  block.buffers.push_back({"shard from disk", behind_host(o.parameters) ? shard * draft.context.width : 0,
                           Category::buffers, false, -1, MemoryTier::host});
  block.buffers.push_back(
      {"gradients to disk", behind_host(o.gradients) ? gradients : 0, Category::buffers, false, -1, MemoryTier::host});
  const bool raised = draft.facts.row.fp32_shards && draft.facts.host_parameters();
  block.buffers.push_back({"raised shard", raised ? shard * draft.shard_width() : 0, Category::buffers});
}

void place_on_host(const Draft& draft, Block& block, std::int64_t own) {
  const Offload& o = draft.facts.spec.strategy.offload;
  block.buffers[kParameterShard].home = block.buffers[kFrozenShard].home = o.parameters;
  if (draft.facts.host_frozen() && !draft.facts.host_parameters()) block.buffers[kFrozenShard].home = MemoryTier::host;
  block.buffers[kGradientShard].home = o.gradients;
  for (const StateSlot slot : {kMaster, kMoment1, kMoment2}) {
    block.buffers[slot].home = o.optimizer;
    if (behind_host(o.optimizer)) block.buffers[slot].lazy = false;  // disk space is allocated before the first step
  }
  const Bytes gradients = own * draft.facts.gradient_width;
  block.buffers[kHostGradients] = {"host gradients",
                                   draft.facts.host_update() && !draft.facts.host_gradients() ? gradients : 0,
                                   Category::gradients,
                                   false,
                                   -1,
                                   MemoryTier::host};
  block.buffers[kNextGradients] = {
      "next gradients", draft.facts.delayed() ? gradients : 0, Category::gradients, false, -1, MemoryTier::host};
}

void add_tiles(Draft& draft, Chunk& chunk) {
  Plan& plan = draft.plan;
  if (!draft.facts.host_update() || chunk.weights.own == 0) return;
  const Strategy& s = draft.facts.spec.strategy;
  const bool disks = behind_host(s.offload.optimizer);
  const std::int64_t tile = std::min(s.offload.tile, chunk.weights.own);
  const std::int64_t tiles = ceil_div(chunk.weights.own, tile);
  const std::int64_t sets = draft.facts.delayed() ? tiles : std::min<std::int64_t>(tiles, disks ? 3 : 2);
  const auto buffer = [&](const char* name, bool has, Bytes width) {
    return BlockBuffer{name, has ? tile * width : 0, Category::buffers, false, -1, MemoryTier::host};
  };
  const int moments = disks ? s.optimizer.moments() : 0;
  plan.blocks.push_back(
      {.name = "tile",
       .role = BlockRole::tile,
       .buffers = {buffer("new weights", s.offload.parameters != MemoryTier::host, draft.shard_width()),
                   buffer("tile of master weights", disks, s.optimizer.master_bytes),
                   buffer("tile of first moments", moments > 0, s.optimizer.moment_bytes),
                   buffer("tile of second moments", moments > 1, s.optimizer.moment_bytes),
                   buffer("tile of gradients", behind_host(s.offload.gradients), draft.facts.gradient_width)}});
  const auto block = static_cast<std::uint32_t>(plan.blocks.size() - 1);
  for (std::int64_t i = 0; i < sets; ++i) {
    chunk.tiles.push_back(draft.add_frame(block));
    plan.frames[chunk.tiles.back()].state = chunk.state;
  }
}

}  // namespace orrery
