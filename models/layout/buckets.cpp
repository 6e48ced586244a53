#include "models/layout/buckets.h"

#include <algorithm>

#include "models/layout/replicas.h"
#include "models/layout/unit_frames.h"
#include "models/layout/whole_layers.h"

namespace orrery {

// Returns whether a gradient bucket must end at the element that lies `at` elements after the start of the sharding
// unit (as in FSDP) that has this block's weights.
static bool is_bound(const Draft& draft, const Entry& entry, std::int64_t at) {
  const Regions& regions = draft.layout.regions.at(entry.unit);
  if (!draft.facts.unit_gradients)
    return cut_alike(draft, draft.plan.blocks[entry.block]) && (at == 0 || at == regions.front().elements);
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Region& r) { return at == r.first || at == r.first + r.elements; });
}

void make_buckets(Draft& draft, Chunk& chunk) {
  const Schedule& schedule = draft.schedule;
  chunk.bucket_of.resize(chunk.entries.size());
  const bool alone = draft.group_size(Dimension::data) == 1 && draft.group_size(Dimension::expert_data) == 1 &&
                     !draft.facts.row.servers && !shares_table_unlike(draft);
  if (draft.facts.row.shards_parameters || (alone && (!draft.facts.host_update() || draft.facts.unit_gradients)))
    return;
  const double elements =
      draft.facts.spec.strategy.bucket_MiB * 1048576.0 / static_cast<double>(draft.facts.gradient_width);
  const bool first = chunk.place >= 0 && chunk.place % schedule.virtual_stages() == 0 &&
                     // whether the chunk is the first virtual stage of a copy of the model
                     chunk.place / schedule.virtual_stages() < schedule.copies;
  const bool whole = draft.facts.spec.software.communication.buckets_on_first_chunk && !first;
  const std::int64_t limit = whole ? 0 : std::max<std::int64_t>(1, static_cast<std::int64_t>(elements));
  Bucket open;
  const auto close = [&] {
    if (open.elements > 0) chunk.buckets.push_back(open);
    open = {};
  };
  for (std::size_t e = chunk.entries.size(); e-- > 0;) {
    const Entry& entry = chunk.entries[e];
    const Block& block = draft.plan.blocks[entry.block];
    chunk.bucket_of[e].assign(block.parameters.size(), -1);
    if (!entry.owns) continue;
    if (shares_layers(draft)) close();
    for (std::size_t p = block.parameters.size(); p-- > 0;) {
      const LocalParameter& parameter = block.parameters[p];
      if (parameter.frozen) continue;
      const auto bounds = [&](std::int64_t at) { return is_bound(draft, entry, at); };
      if (bounds(parameter.offset + parameter.out * parameter.in) || open.group != copies_of(draft, parameter)) close();
      open.group = copies_of(draft, parameter);
      open.first = entry.base + parameter.offset;
      open.elements += parameter.out * parameter.in;
      ++open.tensors;
      if (open.units.empty() || open.units.back() != entry.unit) open.units.push_back(entry.unit);
      chunk.bucket_of[e][p] = static_cast<std::int32_t>(chunk.buckets.size());
      const bool full = !draft.facts.unit_gradients && limit > 0 && open.elements >= limit;
      if (full || bounds(parameter.offset)) close();
    }
  }
  close();
}

void count_gradients(Draft& draft) {
  for (Chunk& chunk : draft.layout.chunks) {
    for (Bucket& bucket : chunk.buckets) bucket.missing = 0;
  }
  const bool each_time = draft.facts.reduces_each_time;
  for (Chunk& chunk : draft.layout.chunks) {
    for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
      for (const std::uint32_t op : draft.plan.blocks[chunk.entries[e].block].backward) {
        for (const Operand& operand : draft.plan.ops[op].operands) {
          if (Bucket* bucket = bucket_of(draft, chunk, e, operand).bucket)
            bucket->missing += each_time ? 1 : chunk.micro_batches;
        }
      }
    }
  }
  for (Chunk& chunk : draft.layout.chunks) {
    for (Bucket& bucket : chunk.buckets) bucket.awaited = bucket.missing;
  }
}

BucketPlace bucket_of(Draft& draft, Chunk& chunk, std::size_t e, const Operand& operand) {
  if (operand.scope != Scope::state || operand.slot != kGradients) return {};
  const bool table = operand.part == Part::tied;
  if (operand.parameter < 0 && !table) return {};
  const bool owns = chunk.entries[e].owns && !table;
  Chunk& home = owns ? chunk : draft.layout.chunks[draft.table_chunk().number];
  if (home.buckets.empty()) return {};
  const std::int32_t at = owns ? home.bucket_of[e][operand.parameter] : home.bucket_of[draft.table_entry()].front();
  return {&home, &home.buckets[at]};
}

}  // namespace orrery
