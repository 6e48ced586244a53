#include "models/layout/whole_layers.h"

#include <algorithm>
#include <set>

namespace orrery {

bool shares_layers(const Draft& draft) {
  return draft.facts.spec.strategy.optimizer.kind == OptimizerKind::muon && draft.shards(Dimension::data) > 1;
}

std::int64_t share_of_layer(const Draft& draft, const Chunk& chunk, const Entry& entry) {
  const std::int64_t elements = draft.plan.blocks[entry.block].parameter_elements;
  if (!shares_layers(draft)) return elements;
  if (draft.facts.row.shards_parameters) return draft.shard(draft.layout.regions.at(entry.unit));
  std::int64_t sum = 0;
  for (const Bucket& b : chunk.buckets) {
    if (b.first >= entry.base && b.first < entry.base + elements) sum += draft.shard(b.elements, b.group);
  }
  return sum;
}

std::int64_t complete_layer(const Draft& draft, const Chunk& chunk, const Entry& entry) {
  return share_of_layer(draft, chunk, entry) * draft.shards(Dimension::data);
}

std::int64_t whole_layer_elements(const Draft& draft, const Chunk& chunk) {
  std::int64_t most = 0;
  for (const Entry& e : chunk.entries) {
    if (draft.plan.blocks[e.block].role == BlockRole::layer) most = std::max(most, complete_layer(draft, chunk, e));
  }
  const std::int64_t tensor = draft.group_size(Dimension::tensor);
  return most * (1 + (draft.group_size(Dimension::data) > 1 ? 1 : 0) + (tensor > 1 ? tensor : 0));
}

// Returns how many elements of the range [first, first + elements) of a chunk's flat buffers are not in layers'
// matrices.
static std::int64_t vectors_in(const Draft& draft, const Chunk& chunk, std::int64_t first, std::int64_t elements) {
  std::int64_t sum = 0;
  for (const Entry& e : chunk.entries) {
    const Block& block = draft.plan.blocks[e.block];
    if (!e.owns) continue;
    for (const LocalParameter& p : block.parameters) {
      if (p.frozen || (p.in > 1 && block.role == BlockRole::layer)) continue;
      const std::int64_t begin = std::max(first, e.base + p.offset);
      const std::int64_t end = std::min(first + elements, e.base + p.offset + p.out * p.in);
      sum += std::max<std::int64_t>(0, end - begin);
    }
  }
  return sum;
}

std::int64_t own_vectors(const Draft& draft, const Chunk& chunk) {
  if (draft.facts.spec.strategy.optimizer.kind != OptimizerKind::muon) return 0;
  if (!shares_layers(draft)) return chunk.weights.all - chunk.weights.matrices;
  std::int64_t sum = 0;
  const auto add = [&](std::int64_t first, std::int64_t elements, Dimension group) {
    sum += std::min(draft.shard(elements, group), vectors_in(draft, chunk, first, elements));
  };
  for (const Bucket& b : chunk.buckets) add(b.first, b.elements, b.group);
  if (!draft.facts.row.shards_parameters) return sum;
  std::set<std::uint32_t> units;  // ids of the units counted so far; several blocks may share a unit
  for (const Entry& e : chunk.entries) {
    if (!e.owns || !units.insert(e.unit).second) continue;
    for (const Region& r : draft.layout.regions.at(e.unit))
      add(draft.plan.frames[e.unit].base + r.first, r.elements, r.group);
  }
  return sum;
}

std::int64_t tensor_norms(const Draft& draft, const Chunk& chunk) {
  std::int64_t tensors = 0;
  for (const Entry& e : chunk.entries) {
    for (const LocalParameter& p : draft.plan.blocks[e.block].parameters) tensors += e.owns && !p.frozen ? 1 : 0;
  }
  return 2 * tensors;
}

}  // namespace orrery
