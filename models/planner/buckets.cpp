// PlanBuilder: how gradients are gathered into buckets.
#include <algorithm>

#include "models/planner/plan_builder.h"

namespace orrery {

// Whether a bucket must end `at` elements behind the base of the entry's unit.
bool PlanBuilder::is_bound(const Entry& entry, std::int64_t at) const {
  const std::vector<Region>& regions = regions_.at(entry.unit);
  if (!unit_gradients_) return cut_alike(plan_.blocks[entry.block]) && (at == 0 || at == regions.front().elements);
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Region& r) { return at == r.first || at == r.first + r.elements; });
}

// Buckets hold weights in the order in which backward finishes them: from the last block to the first, within a block
// from its last weight to its first. Where each rank owns a piece of every bucket, regions bound the buckets: all
// regions of a unit where units are reduced one by one, so that a rank gathers what it has updated, else that of a tied
// matrix (Megatron-Core gives it a bucket of its own too). Experts' weights are in buckets of their own.
void PlanBuilder::make_buckets(Chunk& chunk) {
  chunk.bucket_of.resize(chunk.entries.size());
  const bool alone = group_size(Dimension::data) == 1 && group_size(Dimension::expert_data) == 1 && !row_.servers &&
                     !shares_table_unlike();
  if (row_.shards_parameters || (alone && (!host_update() || unit_gradients_))) return;
  const double elements = spec_.strategy.bucket_MiB * 1048576.0 / static_cast<double>(gradient_width_);
  const bool first = chunk.place >= 0 && chunk.place % schedule_.virtual_stages() == 0 &&
                     chunk.place / schedule_.virtual_stages() < schedule_.copies;  // the first stage of a copy
  const bool whole = spec_.software.buckets_on_first_chunk && !first;
  const std::int64_t limit = whole ? 0 : std::max<std::int64_t>(1, static_cast<std::int64_t>(elements));
  Bucket open;
  const auto close = [&] {
    if (open.elements > 0) chunk.buckets.push_back(open);
    open = {};
  };
  for (std::size_t e = chunk.entries.size(); e-- > 0;) {
    const Entry& entry = chunk.entries[e];
    const Block& block = plan_.blocks[entry.block];
    chunk.bucket_of[e].assign(block.parameters.size(), -1);
    if (!entry.owns) continue;
    for (std::size_t p = block.parameters.size(); p-- > 0;) {
      const LocalParameter& parameter = block.parameters[p];
      const auto bounds = [&](std::int64_t at) { return is_bound(entry, at); };
      if (bounds(parameter.offset + parameter.out * parameter.in) || open.group != copies_of(parameter)) close();
      open.group = copies_of(parameter);
      open.first = entry.base + parameter.offset;
      open.elements += parameter.out * parameter.in;
      ++open.tensors;
      if (open.units.empty() || open.units.back() != entry.unit) open.units.push_back(entry.unit);
      chunk.bucket_of[e][p] = static_cast<std::int32_t>(chunk.buckets.size());
      const bool full = !unit_gradients_ && limit > 0 && open.elements >= limit;
      if (full || bounds(parameter.offset)) close();
    }
  }
  close();
}

// Counts the gradients that each bucket waits for: in whatever order and in however many parts a micro-batch runs back,
// every op of backward runs once.
void PlanBuilder::count_gradients() {
  for (Chunk& chunk : chunks_) {
    for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
      for (const std::uint32_t op : plan_.blocks[chunk.entries[e].block].backward) {
        for (const Operand& operand : plan_.ops[op].operands) {
          if (Bucket* bucket = bucket_of(chunk, e, operand).bucket) bucket->missing += chunk.micro_batches;
        }
      }
    }
  }
}

}  // namespace orrery
