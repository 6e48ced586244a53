#pragma once

// Bytes that a layer keeps between forward and backward.

#include <set>

#include "models/layers/blocks.h"
#include "tests/models/plans.h"

namespace orrery::test {

struct Kept {
  Bytes bytes = 0;
  // bytes of the statistics of norms and flash attention: kept by every stack, left out by the papers' formulas
  Bytes statistics = 0;
};

inline Kept kept(const Spec& spec) {
  std::vector<Op> ops;
  const BlockContext context(spec, row_of(spec.strategy.sharding));
  const Block block = layer_block(context, 0, spec.strategy.recompute.any(), ops);
  std::set<std::uint16_t> alive = {kInput};
  for (const std::uint32_t op : block.forward) {
    for (const Operand& o : ops[op].allocates)
      if (o.scope == Scope::own) alive.insert(o.slot);
    for (const Operand& o : ops[op].frees)
      if (o.scope == Scope::own) alive.erase(o.slot);
  }
  Kept result;
  for (const std::uint16_t s : alive)
    (block.buffers[s].name == "statistics" ? result.statistics : result.bytes) += block.buffers[s].bytes;
  return result;
}

}  // namespace orrery::test
