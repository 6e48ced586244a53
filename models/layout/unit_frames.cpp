#include "models/layout/unit_frames.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "models/layout/host_buffers.h"
#include "models/layout/joined_units.h"
#include "models/layout/replicas.h"
#include "models/layout/uncut_place.h"
#include "models/partition/rank_groups.h"
#include "models/spec/narrow_transfers.h"

namespace orrery {

bool cut_alike(const Draft& draft, const Block& block) {
  return draft.shards(Dimension::data) > 1 && draft.facts.table_has_two_uses() && !draft.context.ends_meet &&
         !block.parameters.empty() && block.parameters.front().name == kEmbeddingTable &&
         !block.parameters.front().frozen;
}

Dimension copies_of(const Draft& draft, const LocalParameter& p) {
  if (p.experts > 0) return Dimension::expert_data;
  return p.name == kEmbeddingTable && shares_table_unlike(draft) ? Dimension::embedding : Dimension::data;
}

// Returns the regions of a block's weights (each is sharded by itself): a new region begins at each weight that is held
// by another group of ranks than the weight before it.
static Regions regions_of(const Draft& draft, const Block& block) {
  Regions regions;
  const bool alone = cut_alike(draft, block);
  for (const LocalParameter& p : block.parameters) {
    // A tile of a weight is a unit of its own, so its elements are not in the regions of the block's unit.
    if (p.frozen || (draft.facts.row.shards_parameters && p.tile > 0)) continue;
    const bool behind_table = alone && &p == &block.parameters[1];
    if (regions.empty() || behind_table || regions.back().group != copies_of(draft, p))
      regions.push_back({p.offset, 0, copies_of(draft, p)});
    regions.back().elements += p.out * p.in;
  }
  return regions;
}

// Returns the regions of a block's frozen weights, in units of Plan::frozen_width bytes.
static Regions frozen_regions_of(const Block& block) {
  Regions regions;
  for (const LocalParameter& p : block.parameters) {
    const Dimension group = p.experts > 0 ? Dimension::expert_data : Dimension::data;
    if (!p.frozen) continue;
    if (regions.empty() || regions.back().group != group) regions.push_back({p.offset, 0, group});
    regions.back().elements += p.stored;
  }
  return regions;
}

static std::int64_t elements_of(const Regions& regions) {
  std::int64_t sum = 0;
  for (const Region& r : regions) sum += r.elements;
  return sum;
}

std::int64_t own_elements(const Draft& draft, const Chunk& chunk) {
  if (!draft.facts.row.shards_parameters && chunk.buckets.empty()) return chunk.weights.all;
  std::int64_t sum = 0;
  for (const Bucket& b : chunk.buckets) sum += draft.shard(b.elements, b.group);
  if (!draft.facts.row.shards_parameters) return sum;
  std::set<std::uint32_t> units;  // ids of the units counted so far; several blocks may share a unit
  for (const Entry& e : chunk.entries) {
    if (!e.owns || !units.insert(e.unit).second) continue;
    for (std::uint32_t u = e.unit; u != kNone; u = draft.plan.frames[u].next)
      sum += draft.shard(draft.layout.regions.at(u));
  }
  return sum;
}

bool borrows_table(const Draft& draft, const Entry& entry) {
  const bool predicts = draft.facts.spec.model.mtp_layers > 0 &&
                        draft.plan.blocks[entry.block].role == BlockRole::layer &&
                        entry.layer == draft.facts.spec.model.layers;
  return predicts && draft.facts.unit_gradients && draft.context.ends_meet;
}

bool copies_out(const Draft& draft, const Regions& regions) {
  return draft.facts.spec.software.communication.unit_copies == UnitCopies::parameters &&
         !draft.facts.spec.strategy.zero_quantize.any() && draft.facts.row.shards_parameters &&
         draft.facts.spec.strategy.offload.tiling == 1 &&
         (regions.size() > 1 || (!regions.empty() && draft.group_size(regions.front().group) > 1));
}

bool joins_gradients(const Draft& draft, const Regions& regions) {
  return draft.facts.spec.software.communication.unit_copies == UnitCopies::gradients ||
         (copies_out(draft, regions) && draft.facts.gradient_width == draft.context.width);
}

static Block unit_block(const Draft& draft, std::int64_t elements, const Regions& regions, const Regions& frozen) {
  const PlanFacts& facts = draft.facts;
  const Bytes frozen_whole = elements_of(frozen) * draft.plan.frozen_width;
  const Bytes frozen_shard = facts.host_frozen() ? draft.shard(frozen) * draft.plan.frozen_width : 0;
  const Bytes width = draft.context.width, whole = elements * width;
  const bool staged = facts.row.fp32_shards || facts.host_parameters();
  const Bytes cast = facts.gradient_width != width ? elements * facts.gradient_width : 0;
  Block block = {
      .name = "unit",
      .role = BlockRole::unit,
      .buffers = {{"gathered parameters", facts.row.shards_parameters ? whole : 0, Category::parameters},
                  {"cast shard", (staged ? draft.shard(regions) * width : 0) + frozen_shard, Category::buffers},
                  {"unit gradients", whole, Category::gradients},
                  {"cast gradients", cast, Category::buffers}}};
  add_staging(draft, block, draft.shard(regions));
  block.buffers.push_back({"arrived parameters", copies_out(draft, regions) ? whole : 0, Category::parameters});
  block.buffers.push_back({"joined gradients", joins_gradients(draft, regions) ? whole : 0, Category::gradients});
  block.buffers.push_back(
      {"gathered frozen parameters", facts.row.shards_parameters ? frozen_whole : 0, Category::parameters});
  const ZeroQuantize& narrow = facts.spec.strategy.zero_quantize;
  if (!narrow.any()) return block;
  const std::int64_t shard = draft.shard(regions), ranks = draft.group_size(Dimension::data);
  const Bytes sent = narrow.weight_bits > 0 ? narrow_bytes(gathered_format(facts.spec), shard) : 0;
  if (narrow.weight_bits > 0) block.buffers[kCastShard].bytes = sent;
  block.buffers.push_back({"narrow parameters", ranks * sent, Category::parameters});
  const Bytes gradients = narrow.gradient_bits > 0 ? ranks * narrow_bytes(reduced_format(facts.spec), shard) : 0;
  block.buffers.push_back({"narrow gradients", gradients, Category::buffers});
  block.buffers.push_back({"arrived gradients", gradients, Category::buffers});
  return block;
}

static std::uint32_t add_unit(Draft& draft, std::int64_t elements, const Regions& regions, const Regions& frozen = {}) {
  const Bytes bytes = elements_of(frozen) * draft.plan.frozen_width;
  const std::string key =
      fmt::format("unit {} {} {} {} {}", elements, regions.size(), draft.shard(regions), bytes, draft.shard(frozen));
  const auto make = [&] { return unit_block(draft, elements, regions, frozen); };
  const std::uint32_t frame = draft.add_frame(draft.block(key, make));
  draft.layout.regions[frame] = regions;
  draft.layout.frozen[frame] = frozen;
  return frame;
}

// Adds a sharding unit (as in FSDP) for every tile (range of rows) of a block's weights. The units' buffers form a
// linked list (Frame::next), whose first element is the unit of the weights that are not cut into tiles.
static void add_tile_units(Draft& draft, const Entry& entry) {
  Plan& plan = draft.plan;
  std::uint32_t before = entry.unit;
  // `parameters` must be a copy, because adding units appends to plan.blocks, which may move its elements.
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

// Returns the number of Adafactor's statistics of a weight: one for each row and each column of the complete matrix, or
// one for each element of a vector. Each rank has them all, even if it has only a part of the weight.
static std::int64_t sums_of(const Draft& draft, const LocalParameter& p) {
  if (draft.facts.spec.strategy.optimizer.kind != OptimizerKind::adafactor) return 0;
  const auto size = [&](Dimension d) { return GroupPosition{0, draft.group_size(d)}; };
  const UncutShape whole = uncut_place(draft.facts.spec.model, p, size).whole;
  return whole.in > 1 ? whole.out + whole.in : whole.out;
}

// Adds the elements of a block's weights to the counts of its chunk: all elements, those in matrices, and those whose
// gradients are summed over a tensor group or over ranks with the same key/value heads.
static void count_weights(const Draft& draft, WeightCounts& counts, const Block& block) {
  counts.all += block.parameter_elements;
  for (const LocalParameter& p : block.parameters) {
    if (p.frozen) continue;
    const std::int64_t elements = p.out * p.in;
    for (const Dimension group : tensor_axes(draft.facts.spec.strategy))
      counts.partial[group] += p.summed_over(group) ? elements : 0;
    counts.kv += p.kv_rows * p.in;
    counts.matrices += p.in > 1 && block.role == BlockRole::layer ? elements : 0;
    counts.sums += sums_of(draft, p);
  }
}

// Appends the regions (ranges that are sharded by themselves) of one block to those of a sharding unit; the block
// begins `before` elements after the unit's first element. Adjacent regions of one group become one region.
static void append(Regions& regions, const Regions& of_block, std::int64_t before) {
  for (Region r : of_block) {
    r.first += before;
    if (!regions.empty() && before > 0 && regions.back().group == r.group &&
        regions.back().first + regions.back().elements == r.first)
      regions.back().elements += r.elements;
    else
      regions.push_back(r);
  }
}

// Assigns places in a chunk's flat buffers to the weights of one sharding unit (as in FSDP), block by block. members:
// indices of the unit's blocks in the chunk.
static void place_unit(Draft& draft, Chunk& chunk, const std::vector<std::size_t>& members) {
  Plan& plan = draft.plan;
  const std::int64_t base = chunk.weights.all, frozen_base = chunk.frozen_units;
  Regions regions, frozen;
  for (const std::size_t e : members) {
    Entry& entry = chunk.entries[e];
    const Block& block = plan.blocks[entry.block];
    entry.base = chunk.weights.all;
    entry.frozen_base = chunk.frozen_units;
    append(regions, regions_of(draft, block), entry.base - base);
    append(frozen, frozen_regions_of(block), entry.frozen_base - frozen_base);
    chunk.frozen_units += block.frozen_units;
    count_weights(draft, chunk.weights, block);
  }
  const std::int64_t together = elements_of(regions);
  const std::uint32_t unit = add_unit(draft, together, regions, frozen);
  const Entry& first = chunk.entries[members.front()];
  plan.frames[unit].layer = first.layer;
  plan.frames[unit].base = base;
  plan.frames[unit].frozen_base = frozen_base;
  chunk.weights.secondary += ceil_div(together, draft.group_size(Dimension::data_in_node));
  chunk.weights.frozen += elements_of(frozen) * plan.frozen_width;
  chunk.weights.frozen_own += draft.shard(frozen) * plan.frozen_width;
  for (const std::size_t e : members) chunk.entries[e].unit = unit;
  if (borrows_table(draft, first)) plan.frames[unit].previous = draft.table_chunk().entries[draft.table_entry()].unit;
  if (draft.facts.row.shards_parameters) add_tile_units(draft, first);
}

void place_weights(Draft& draft, Chunk& chunk) {
  for (Entry& entry : chunk.entries) {
    const bool table = draft.plan.blocks[entry.block].role == BlockRole::output;
    const Model& model = entry.second ? draft.second->spec.model : draft.facts.spec.model;
    entry.owns = !(model.tied_embeddings && draft.context.ends_meet && table);
  }
  for (const std::vector<std::size_t>& members : unit_members(draft, chunk)) place_unit(draft, chunk, members);
  for (Entry& entry : chunk.entries) {
    if (entry.owns) continue;
    const Entry& table = draft.table_chunk().entries[draft.table_entry(entry.second)];
    entry.unit = table.unit;
    entry.base = table.base;
    entry.frozen_base = table.frozen_base;
  }
}

}  // namespace orrery
