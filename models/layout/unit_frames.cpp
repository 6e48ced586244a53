#include "models/layout/unit_frames.h"

#include <fmt/format.h>

#include "models/layout/host_buffers.h"
#include "models/layout/replicas.h"
#include "models/partition/rank_groups.h"

namespace orrery {

bool cut_alike(const Draft& draft, const Block& block) {
  return draft.shards(Dimension::data) > 1 && draft.facts.table_has_two_uses() && !draft.context.ends_meet &&
         !block.parameters.empty() && block.parameters.front().name == kEmbeddingTable;
}

Dimension copies_of(const Draft& draft, const LocalParameter& p) {
  if (p.experts > 0) return Dimension::expert_data;
  return p.name == kEmbeddingTable && shares_table_unlike(draft) ? Dimension::embedding : Dimension::data;
}

// Regions of a block's weights: a new region begins at each weight that is held by another group of ranks than the
// weight before it.
static Regions regions_of(const Draft& draft, const Block& block) {
  Regions regions;
  const bool alone = cut_alike(draft, block);
  for (const LocalParameter& p : block.parameters) {
    if (draft.facts.row.shards_parameters && p.tile > 0) continue;  // a tile of a weight is a unit by itself
    const bool behind_table = alone && &p == &block.parameters[1];
    if (regions.empty() || behind_table || regions.back().group != copies_of(draft, p))
      regions.push_back({p.offset, 0, copies_of(draft, p)});
    regions.back().elements += p.out * p.in;
  }
  return regions;
}

std::int64_t own_elements(const Draft& draft, const Chunk& chunk) {
  if (!draft.facts.row.shards_parameters && chunk.buckets.empty()) return chunk.weights.all;
  std::int64_t sum = 0;
  for (const Bucket& b : chunk.buckets) sum += draft.shard(b.elements, b.group);
  if (!draft.facts.row.shards_parameters) return sum;
  for (const Entry& e : chunk.entries) {
    for (std::uint32_t u = e.owns ? e.unit : kNone; u != kNone; u = draft.plan.frames[u].next)
      sum += draft.shard(draft.layout.regions.at(u));
  }
  return sum;
}

bool lends_table(const Draft& draft, const Entry& entry) {
  const bool predicts = draft.facts.spec.model.mtp_layers > 0 &&
                        draft.plan.blocks[entry.block].role == BlockRole::layer &&
                        entry.layer == draft.facts.spec.model.layers;
  return predicts && draft.facts.unit_gradients && draft.context.ends_meet;
}

bool copies_out(const Draft& draft, const Regions& regions) {
  return draft.facts.spec.software.communication.unit_copies == UnitCopies::parameters &&
         draft.facts.row.shards_parameters && draft.facts.spec.strategy.offload.tiling == 1 &&
         (regions.size() > 1 || (!regions.empty() && draft.group_size(regions.front().group) > 1));
}

bool joins_gradients(const Draft& draft, const Regions& regions) {
  return draft.facts.spec.software.communication.unit_copies == UnitCopies::gradients ||
         (copies_out(draft, regions) && draft.facts.gradient_width == draft.context.width);
}

static Block unit_block(const Draft& draft, std::int64_t elements, const Regions& regions) {
  const PlanFacts& facts = draft.facts;
  const Bytes width = draft.context.width, whole = elements * width;
  const bool staged = facts.row.fp32_shards || facts.host_parameters();
  const Bytes cast = facts.gradient_width != width ? elements * facts.gradient_width : 0;
  Block block = {.name = "unit",
                 .role = BlockRole::unit,
                 .buffers = {{"gathered parameters", facts.row.shards_parameters ? whole : 0, Category::parameters},
                             {"cast shard", staged ? draft.shard(regions) * width : 0, Category::buffers},
                             {"unit gradients", whole, Category::gradients},
                             {"cast gradients", cast, Category::buffers}}};
  add_staging(draft, block, draft.shard(regions));
  block.buffers.push_back({"arrived parameters", copies_out(draft, regions) ? whole : 0, Category::parameters});
  block.buffers.push_back({"joined gradients", joins_gradients(draft, regions) ? whole : 0, Category::gradients});
  return block;
}

static std::uint32_t add_unit(Draft& draft, std::int64_t elements, const Regions& regions) {
  const std::string key = fmt::format("unit {} {} {}", elements, regions.size(), draft.shard(regions));
  const std::uint32_t frame = draft.add_frame(draft.block(key, [&] { return unit_block(draft, elements, regions); }));
  draft.layout.regions[frame] = regions;
  return frame;
}

// Adds a unit for each weight tile of an entry, linked after the entry's unit in the order of the tiles' numbers.
static void add_tile_units(Draft& draft, const Entry& entry) {
  Plan& plan = draft.plan;
  std::uint32_t before = entry.unit;
  // `parameters` is a copy because adding units changes plan.blocks
  const std::vector<LocalParameter> parameters = plan.blocks[entry.block].parameters;
  for (const LocalParameter& p : parameters) {
    if (p.tile == 0) continue;
    const std::int64_t elements = p.out * p.in;
    const std::uint32_t tile = add_unit(draft, elements, {{0, elements, copies_of(draft, p)}});
    plan.frames[tile].layer = entry.layer;
    plan.frames[tile].base = entry.base + p.offset;
    plan.frames[before].next = tile;
    before = tile;
  }
}

void place_weights(Draft& draft, Chunk& chunk) {
  Plan& plan = draft.plan;
  for (Entry& entry : chunk.entries) {
    const Block& block = plan.blocks[entry.block];
    const std::int64_t elements = block.parameter_elements;
    if (draft.facts.spec.model.tied_embeddings && draft.context.ends_meet && block.role == BlockRole::output) {
      entry.owns = false;
      entry.unit = draft.table_chunk().entries.front().unit;
      continue;
    }
    entry.base = chunk.weights.all;
    chunk.weights.all += elements;
    for (const LocalParameter& p : block.parameters) {
      for (const Dimension group : tensor_axes(draft.facts.spec.strategy))
        chunk.weights.partial[group] += p.summed_over(group) ? p.out * p.in : 0;
      chunk.weights.kv += p.kv_rows * p.in;
    }
    const Regions regions = regions_of(draft, block);
    std::int64_t together = 0;
    for (const Region& r : regions) together += r.elements;
    entry.unit = add_unit(draft, together, regions);
    plan.frames[entry.unit].layer = entry.layer;
    plan.frames[entry.unit].base = entry.base;
    if (lends_table(draft, entry)) plan.frames[entry.unit].previous = draft.table_chunk().entries.front().unit;
    if (draft.facts.row.shards_parameters) add_tile_units(draft, entry);
  }
}

}  // namespace orrery
