#include "models/layout/joined_units.h"

#include <algorithm>
#include <map>

namespace orrery {
namespace {

// Returns the number of the sharding unit (as in FSDP) that a block joins with other blocks, or -1 if the block is a
// unit of its own. at: number of layers of the chunk that come before the block.
std::int64_t unit_of(const UnitRule& rule, const Block& block, const Entry& entry, std::int64_t at) {
  if (block.parameters.empty()) return -1;
  if (rule.model) return 0;
  if (block.role != BlockRole::layer) return -1;
  if (rule.lists.empty()) return at / rule.layers;
  const auto names = [&](const std::vector<std::int64_t>& list) {
    return std::ranges::find(list, entry.layer) != list.end();
  };
  const auto found = std::ranges::find_if(rule.lists, names);
  return found == rule.lists.end() ? -1 : found - rule.lists.begin();
}

}  // namespace

std::vector<std::vector<std::size_t>> unit_members(const Draft& draft, const Chunk& chunk) {
  const bool joins = draft.facts.joins_units();
  std::vector<std::vector<std::size_t>> units;
  // for each unit that joins several blocks, its index in `units`; the key is the number that unit_of() returns
  std::map<std::int64_t, std::size_t> joined;
  std::int64_t layers = 0;
  for (std::size_t e = 0; e < chunk.entries.size(); ++e) {
    const Entry& entry = chunk.entries[e];
    const Block& block = draft.plan.blocks[entry.block];
    const std::int64_t unit = joins ? unit_of(draft.facts.spec.strategy.units, block, entry, layers) : -1;
    layers += block.role == BlockRole::layer ? 1 : 0;
    if (!entry.owns) continue;
    const auto found = unit < 0 ? joined.end() : joined.find(unit);
    if (found != joined.end()) {
      units[found->second].push_back(e);
      continue;
    }
    if (unit >= 0) joined[unit] = units.size();
    units.push_back({e});
  }
  return units;
}

}  // namespace orrery
