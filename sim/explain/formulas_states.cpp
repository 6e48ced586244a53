// Formulas for the bytes of model states (parameters, gradients, optimizer states).
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "models/layers/blocks.h"
#include "models/layers/placement.h"
#include "models/spec/sharding.h"
#include "sim/explain/formulas.h"

namespace orrery {
namespace {

// Whether all ranks of the first and last stage reduce the gradients of tied token embeddings in one collective, as
// they do where the two stages have different numbers of ranks. Otherwise each stage first reduces its own gradients,
// and then pairs of ranks of the two stages sum them.
bool sums_table_apart(const Plan& plan, std::size_t slot) {
  if (group_size(plan, Dimension::embedding, slot) <= 2) return false;
  for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr && c->group == Dimension::embedding) return true;
  }
  return false;
}

Dimension copies_of(const LocalParameter& p, bool table_apart) {
  if (p.experts > 0) return Dimension::expert_data;
  return table_apart && p.name == kEmbeddingTable ? Dimension::embedding : Dimension::data;
}

}  // namespace

std::int64_t group_size(const Plan& plan, Dimension d, std::size_t slot) {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  if (table.groups.empty()) return 1;
  return static_cast<std::int64_t>(table.groups[table.member_of[plan.classes[slot].representative]].size());
}

double StateFormula::bytes(double elements) const {
  const auto part = [&](Bytes each, bool sharded) {
    return static_cast<double>(each) * elements / (sharded ? static_cast<double>(shards) : 1);
  };
  return part(parameters, shards_parameters) + part(gradients, shards_gradients) +
         part(optimizer + copies, shards_optimizer) + part(whole, false);
}

StateFormula state_formula(const Spec& spec, const Plan& plan, Dimension copies) {
  const Strategy& s = spec.strategy;
  const ShardingRow& row = row_of(s.sharding);
  const Bytes width = storage_bytes(s.precision);
  StateFormula f;
  f.parameters = row.fp32_shards ? s.optimizer.master_bytes : width;
  f.gradients = storage_bytes(s.gradient_precision);
  if (spec.software.communication.widens_gradient_shards && unit_gradients(spec, row) && row.fp32_shards)
    f.gradients = std::max(f.gradients, s.optimizer.master_bytes);
  f.optimizer = s.optimizer.kind == OptimizerKind::sgd ? 0 : 2 * s.optimizer.moment_bytes;
  const bool on_host = s.offload.optimizer != MemoryTier::device;
  const bool masters = masters_lie_apart(s, row);
  if (masters) f.optimizer += s.optimizer.master_bytes;
  if (on_host)
    f.copies =
        storage_bytes(s.gradient_precision) * ((s.offload.gradients == MemoryTier::device) + s.offload.delayed_update);
  if (masters && row.shards_optimizer && spec.software.communication.whole_master == s.precision) {
    f.whole = s.optimizer.master_bytes;
    f.optimizer -= f.whole;
  }
  f.shards_parameters = row.shards_parameters;
  f.shards_gradients = unit_gradients(spec, row);
  f.shards_optimizer = row.shards_optimizer;
  f.shards = row.shards_optimizer ? group_size(plan, copies) : 1;
  return f;
}

StateFormula of_slot(StateFormula f, const Plan& plan, std::size_t slot) {
  if (plan.classes[slot].server) {
    f.shards_parameters = f.shards_gradients = f.shards_optimizer = true;
    f.shards = plan.ranges();
  } else if (!updates(plan, plan.classes[slot])) {
    f.optimizer = 0;
  } else if (f.shards_optimizer) {
    f.shards = group_size(plan, Dimension::data, slot);
  }
  return f;
}

std::string term(Bytes per_parameter, bool sharded) { return fmt::format("{}Ψ{}", per_parameter, sharded ? "/N" : ""); }

std::string text_of(const StateFormula& f) {
  Bytes whole = 0, cut = 0;
  (f.shards_parameters ? cut : whole) += f.parameters;
  (f.shards_gradients ? cut : whole) += f.gradients;
  (f.shards_optimizer ? cut : whole) += f.optimizer + f.copies;
  whole += f.whole;
  if (cut == 0) return term(whole, false);
  return whole == 0 ? term(cut, true) : term(whole, false) + " + " + term(cut, true);
}

// Whether a pass (forward or backward) of a block frees its gathered weights.
static bool gives_up_unit(const Plan& plan, const std::vector<std::uint32_t>& pass) {
  const auto is_unit = [](const Operand& o) { return o.scope == Scope::unit && o.slot == kGathered && o.tile == 0; };
  return std::ranges::any_of(pass, [&](std::uint32_t op) { return std::ranges::any_of(plan.ops[op].frees, is_unit); });
}

// The number of times that backward gathers a tile of a weight; the tile is freed after each use.
static std::int64_t uses_in_backward(const Plan& plan, const Block& block, std::uint16_t tile) {
  const auto of_tile = [&](const Operand& o) {
    return o.scope == Scope::unit && o.slot == kGathered && o.tile == tile;
  };
  return std::ranges::count_if(block.backward,
                               [&](std::uint32_t op) { return std::ranges::any_of(plan.ops[op].frees, of_tile); });
}

std::int64_t elements_of(const Plan& plan, std::size_t slot, Dimension copies, bool again) {
  const bool apart = sums_table_apart(plan, slot);
  struct Unit {
    // together: number of elements that are gathered at once; tiles: number of elements that are gathered tile by tile.
    std::int64_t together = 0, tiles = 0;
    // number of times that a micro-batch frees the weights, after each of which they are gathered again
    std::int64_t gathers = 0;
  };
  // by the frame's id; a tied output shares the unit of the embedding, which comes first
  std::map<std::uint32_t, Unit> units;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    const bool weights = block.role != BlockRole::unit && !outlives_steps(block.role) && f.unit != kNone;
    if (f.slot != slot || !weights || f.micro_batch != 0) continue;
    const auto [at, fresh] = units.try_emplace(f.unit);
    at->second.gathers += (gives_up_unit(plan, block.forward) ? 1 : 0) + (gives_up_unit(plan, block.backward) ? 1 : 0);
    for (const LocalParameter& p : block.parameters) {
      if (!fresh || copies_of(p, apart) != copies) continue;
      const bool tile = p.tile > 0;
      (tile ? at->second.tiles : at->second.together) +=
          p.out * p.in * (tile && again ? uses_in_backward(plan, block, p.tile) : 1);
    }
  }
  std::int64_t sum = 0;
  for (const auto& [frame, unit] : units)
    sum += unit.together * (again ? std::max<std::int64_t>(0, unit.gathers - 1) : 1) + unit.tiles;
  return sum;
}

Bytes states_in_plan(const Plan& plan, std::size_t slot) {
  Bytes sum = 0;
  for (const Frame& f : plan.frames) {
    const BlockRole role = plan.blocks[f.block].role;
    if (f.slot != slot || (role != BlockRole::state && role != BlockRole::version)) continue;
    for (const BlockBuffer& buffer : plan.blocks[f.block].buffers)
      sum += buffer.category == Category::buffers ? 0 : buffer.bytes;
  }
  return sum;
}

}  // namespace orrery
