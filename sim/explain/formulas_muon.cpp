#include "sim/explain/formulas_muon.h"

#include <map>
#include <tuple>

#include <fmt/format.h>

#include "models/spec/sharding.h"

namespace orrery {
namespace {

// Elements of layers on a mean rank: of all layers, and of one layer for each round.
struct LayerElements {
  double all = 0, rounds = 0;
};

LayerElements layer_elements(const Plan& plan) {
  // number of layers by class of ranks, chunk and shape
  std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::int64_t> layers;
  for (const Frame& f : plan.frames) {
    if (f.micro_batch == 0 && plan.blocks[f.block].role == BlockRole::layer) ++layers[{f.slot, f.state, f.block}];
  }
  LayerElements sum;
  for (const auto& [place, count] : layers) {
    const auto& [slot, state, block] = place;
    const double of_rank = static_cast<double>(plan.blocks[block].parameter_elements) *
                           static_cast<double>(plan.classes[slot].multiplicity) / static_cast<double>(plan.ranks);
    sum.all += of_rank * static_cast<double>(count);
    sum.rounds += of_rank * static_cast<double>(ceil_div(count, group_size(plan, Dimension::data, slot)));
  }
  return sum;
}

}  // namespace

Volume with_muon(const Spec& spec, const Plan& plan, Dimension over, Volume v) {
  if (spec.strategy.optimizer.kind != OptimizerKind::muon) return v;
  const LayerElements layers = layer_elements(plan);
  const auto ranks = static_cast<double>(group_size(plan, over));
  const auto width = static_cast<double>(storage_bytes(spec.strategy.precision));
  if (over == Dimension::tensor) {
    v.formula += " + Λ·w(t-1)";
    v.bytes += layers.rounds * width * (ranks - 1);
  } else if (row_of(spec.strategy.sharding).shards_optimizer) {
    v.formula += " + 2Λ·w(N-1)/N";
    v.bytes += 2 * layers.rounds * width * (ranks - 1) / ranks;
  } else {
    v.formula += " + Ψl·w";
    v.numbers += fmt::format(", Ψl = {:.4g} of layers", layers.all);
    v.bytes += layers.all * width;
    return v;
  }
  v.numbers += fmt::format(", Λ = {:.4g}, a layer for each round of Muon", layers.rounds);
  return v;
}

}  // namespace orrery
