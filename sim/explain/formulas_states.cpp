// Formulas for the bytes of model states (parameters, gradients, optimizer states).
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "models/layers/blocks.h"
#include "models/layout/placement.h"
#include "models/spec/sharding.h"
#include "sim/explain/formulas.h"

namespace orrery {
namespace {

// Whether all ranks of the first and last stage reduce the gradients of tied token embeddings in one collective, as
// they do if the two stages have different numbers of ranks. Otherwise each stage first reduces its own gradients, and
// then each pair of a first-stage and a last-stage rank sums the two.
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
         part(optimizer + copies, shards_optimizer) + part(whole + whole_gradients, false) +
         some * elements / (shards_optimizer ? static_cast<double>(shards) : 1);
}

namespace {

// Mean bytes per parameter of the optimizer states that are not one number for each parameter: scales of eight-bit
// moments, and Muon's second moments. Muon keeps these only for weights that are not matrices of layers; the share of
// such weights differs from stage to stage.
double some_moments(const Optimizer& o, const Plan& plan, Dimension copies, std::size_t slot) {
  if (o.eight_bit) return 4.0 * o.moments() / static_cast<double>(kMomentBlock);
  const std::int64_t all = elements_of(plan, slot, copies);
  if (o.kind != OptimizerKind::muon || all == 0) return 0;
  const std::int64_t matrices = layer_matrices(plan, slot, copies);
  return static_cast<double>(o.moment_bytes) * (1 - static_cast<double>(matrices) / static_cast<double>(all));
}

}  // namespace

StateFormula state_formula(const Spec& spec, const Plan& plan, Dimension copies, std::size_t slot) {
  const Strategy& s = spec.strategy;
  const ShardingRow& row = row_of(s.sharding);
  const Bytes width = storage_bytes(s.precision);
  StateFormula f;
  f.parameters = row.fp32_shards ? s.optimizer.master_bytes : width;
  f.gradients = storage_bytes(s.gradient_precision);
  if (spec.software.communication.widens_gradient_shards && unit_gradients(spec, row) && row.fp32_shards)
    f.gradients = std::max(f.gradients, s.optimizer.master_bytes);
  if (s.keep_16bit_gradients) f.gradients += width;
  f.optimizer = s.optimizer.moments() * s.optimizer.moment_bytes;
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
  f.some = some_moments(s.optimizer, plan, copies, slot);
  // Unsharded sums of gradients, kept until they are reduced, have the precision of the reduction. Only the gradient
  // shards, which the reduction leaves, may be kept in a wider data type.
  if (unit_gradients(spec, row) && !fresh_gradients(spec, row)) f.whole_gradients = storage_bytes(s.gradient_precision);
  if (s.zero_quantize.secondary_shards)
    f.some += static_cast<double>(width) * static_cast<double>(group_size(plan, copies)) /
              static_cast<double>(group_size(plan, Dimension::data_in_node));
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
  whole += f.whole + f.whole_gradients;
  if (cut == 0) return term(whole, false);
  return whole == 0 ? term(cut, true) : term(whole, false) + " + " + term(cut, true);
}

// Whether a pass (forward or backward) of a layer frees the layer's gathered weights.
static bool gives_up_unit(const Plan& plan, const std::vector<std::uint32_t>& pass, std::uint16_t gathered) {
  const auto is_unit = [&](const Operand& o) { return o.scope == Scope::unit && o.slot == gathered && o.tile == 0; };
  return std::ranges::any_of(pass, [&](std::uint32_t op) { return std::ranges::any_of(plan.ops[op].frees, is_unit); });
}

// How many times backward gathers a tile (a part of a large weight that is gathered by itself). A tile is freed after
// each use, so the ops that free it are counted.
static std::int64_t uses_in_backward(const Plan& plan, const Block& block, std::uint16_t tile, std::uint16_t gathered) {
  const auto of_tile = [&](const Operand& o) { return o.scope == Scope::unit && o.slot == gathered && o.tile == tile; };
  return std::ranges::count_if(block.backward,
                               [&](std::uint32_t op) { return std::ranges::any_of(plan.ops[op].frees, of_tile); });
}

// Adds up `amount` (such as the number of elements) over those weights of a class of ranks that are replicated or
// sharded over dimension `copies`. again: counts only weights that are gathered a second time, each as often as it is
// gathered again. gathered: the buffer of the FSDP unit into which the weights are gathered.
template <class Amount>
static std::int64_t sum_over_weights(const Plan& plan, std::size_t slot, Dimension copies, bool again,
                                     std::uint16_t gathered, const Amount& amount) {
  const bool apart = sums_table_apart(plan, slot);
  struct Unit {
    // together: sum of the amounts of those weights of an FSDP unit that are gathered at once; tiles: sum of those that
    // are gathered tile by tile.
    std::int64_t together = 0, tiles = 0;
    // how often a micro-batch frees the unit's weights (parameters gathered together), which then have to be gathered
    // again
    std::int64_t gathers = 0;
  };
  std::map<std::uint32_t, Unit> units;  // FSDP units by the id of their set of buffers (frame)
  // The weights counted so far, by FSDP unit and position in the model, so that the weights of an output that is tied
  // to the embedding count once.
  std::set<std::tuple<std::uint32_t, std::int64_t, std::int64_t>> seen;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    const bool weights = block.role != BlockRole::unit && !outlives_steps(block.role) && f.unit != kNone;
    if (f.slot != slot || !weights || f.micro_batch != 0) continue;
    const auto at = units.try_emplace(f.unit).first;
    const bool fresh = seen.insert({f.unit, f.base, f.frozen_base}).second;
    at->second.gathers += (gives_up_unit(plan, block.forward, gathered) ? 1 : 0) +
                          (gives_up_unit(plan, block.backward, gathered) ? 1 : 0);
    for (const LocalParameter& p : block.parameters) {
      if (!fresh || copies_of(p, apart) != copies) continue;
      const bool tile = p.tile > 0;
      (tile ? at->second.tiles : at->second.together) +=
          amount(block, p) * (tile && again ? uses_in_backward(plan, block, p.tile, gathered) : 1);
    }
  }
  // An FSDP unit of several layers is freed by ops of their own ("release unit"), which therefore count its gathers.
  std::map<std::uint32_t, std::int64_t> released;
  for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
    const std::uint32_t frame = plan.tasks[t].frame;
    if (plan.op_of(t).name == "release unit") ++released[frame];
  }
  for (auto& [frame, unit] : units) {
    if (released.contains(frame)) unit.gathers = released.at(frame) / plan.micro_batches;
  }
  std::int64_t sum = 0;
  for (const auto& [frame, unit] : units)
    sum += unit.together * (again ? std::max<std::int64_t>(0, unit.gathers - 1) : 1) + unit.tiles;
  return sum;
}

std::int64_t elements_of(const Plan& plan, std::size_t slot, Dimension copies, bool again) {
  return sum_over_weights(plan, slot, copies, again, kGathered,
                          [](const Block&, const LocalParameter& p) { return p.frozen ? 0 : p.out * p.in; });
}

std::int64_t layer_matrices(const Plan& plan, std::size_t slot, Dimension copies) {
  return sum_over_weights(plan, slot, copies, false, kGathered, [](const Block& block, const LocalParameter& p) {
    return !p.frozen && p.in > 1 && block.role == BlockRole::layer ? p.out * p.in : 0;
  });
}

// Weights in few bits are gathered as they are stored, with a scale for each group of weights.
static Bytes bytes_of_frozen(const LocalParameter& p, Bytes width) {
  return !p.frozen ? 0 : p.nf4 || p.format.narrow() ? p.stored : p.out * p.in * width;
}

Bytes frozen_gathers(const Spec& spec, const Plan& plan, std::size_t slot, Dimension copies, bool again) {
  const Bytes width = storage_bytes(spec.strategy.precision);
  return sum_over_weights(plan, slot, copies, again, kGatheredFrozen,
                          [&](const Block&, const LocalParameter& p) { return bytes_of_frozen(p, width); });
}

double frozen_bytes(const Spec& spec, const Plan& plan, std::size_t slot) {
  const Bytes width = storage_bytes(spec.strategy.precision);
  const Spec of_rank = spec_of_rank(spec, plan.classes[slot].representative);
  const bool cut = row_of(of_rank.strategy.sharding).shards_parameters;
  const auto shards = [&](const LocalParameter& p) {
    const Dimension group = p.experts > 0 ? Dimension::expert_data : Dimension::data;
    return static_cast<double>(cut ? group_size(plan, group, slot) : 1);
  };
  // Bytes that the rank has of each frozen weight, by the set of buffers that holds the weight and the weight's
  // position in the model, so that a matrix shared by embedding and output counts once.
  std::map<std::pair<std::uint32_t, std::int64_t>, double> blocks;
  for (const Frame& f : plan.frames) {
    if (f.slot != slot || f.state == kNone || f.micro_batch != 0) continue;
    for (const LocalParameter& p : plan.blocks[f.block].parameters) {
      if (!p.frozen) continue;
      blocks[{f.state, f.frozen_base + p.offset}] = static_cast<double>(bytes_of_frozen(p, width)) / shards(p);
    }
  }
  double sum = 0;
  for (const auto& [place, bytes] : blocks) sum += bytes;
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
