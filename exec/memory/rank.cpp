#include "exec/memory/rank.h"

#include <algorithm>
#include <iterator>

#include "models/layers/blocks.h"
#include "models/partition/rank_groups.h"
#include "models/plan/unfold.h"
#include "models/spec/sharding.h"

namespace orrery {

Rank::Rank(const Spec& given, const Plan& folded, std::int64_t n)
    : spec(given), number(n), plan(instantiate(folded, n)) {
  const Strategy& s = spec.strategy;
  const Coordinates at =
      n < plan.workers() ? coordinates(s)[static_cast<std::size_t>(n - first_rank())] : Coordinates{};
  replica = at.data;
  samples = s.micro_batch / s.replicas_of(at.pipeline);
  first_sample = at.replica * samples;
  context = at.context;
  parts = rank_parts(s, spec.sequence, context);
  for (std::size_t d = 0; d < plan.dimensions.size(); ++d) {
    positions.push_back(orrery::position_in(plan, static_cast<Dimension>(d), n));
  }
  states = states_of(plan, 0);
  for (const std::uint32_t state : states) {
    parameters[state] = parameters_of(plan, state);
    frozen[state] = parameters_of(plan, state, true);
    pieces[state] = pieces_of(plan, state, n);
    frozen_pieces[state] = frozen_pieces_of(plan, state, n);
    for (const Piece& piece : pieces[state]) {
      if (piece.unit != kNone) unit_pieces[piece.unit].push_back(piece);
    }
  }
}

std::int64_t Rank::first_rank() const { return spec.second && spec.second->alone ? spec.second->strategy->gpus() : 0; }

GroupList::Group Rank::group(Dimension d) const {
  const GroupTable& table = plan.dimensions[static_cast<std::size_t>(d)];
  return table.groups[table.member_of[number]];
}

std::vector<Piece> Rank::frozen_pieces_of_unit(std::uint32_t unit) const {
  std::vector<Piece> own;
  std::ranges::copy_if(frozen_pieces.at(plan.frames[unit].state), std::back_inserter(own),
                       [&](const Piece& p) { return p.unit == unit; });
  return own;
}

Piece Rank::secondary_piece(std::uint32_t unit) const {
  const std::vector<Piece> all = secondary_pieces_of(plan, plan.frames[unit].state, number);
  return *std::find_if(all.begin(), all.end(), [&](const Piece& p) { return p.unit == unit; });
}

kernels::Format16 Rank::format16() const {
  return spec.strategy.precision == Precision::fp16 ? kernels::Format16::fp16 : kernels::Format16::bf16;
}

Bytes Rank::state_width(std::uint16_t slot) const {
  const Optimizer& o = spec.strategy.optimizer;
  const bool sums = o.kind == OptimizerKind::adafactor;  // whether moments are sums, which are always in fp32
  switch (slot) {
    case kParameters:
    case kFreshGradients:
    case kSecondaryShard:
      return plan.element_bytes;
    case kFrozen:
    case kFrozenShard:
      return plan.frozen_width;
    case kParameterShard:
      return row_of(spec.strategy.sharding).fp32_shards ? o.master_bytes : plan.element_bytes;
    case kGradients:
    case kGradientShard:
    case kHostGradients:
    case kNextGradients:
      return storage_bytes(spec.strategy.gradient_precision);
    case kBuckets:
      if (o.kind == OptimizerKind::muon) return plan.element_bytes;
      return sums ? 4 : storage_bytes(spec.strategy.gradient_precision);
    case kMaster:
      return o.master_bytes;
    default:
      return sums ? 4 : o.moment_bytes;
  }
}

Bytes Rank::unit_width(std::uint16_t slot) const {
  if (slot == kGatheredFrozen) return plan.frozen_width;
  if (slot == kRaisedShard) return state_width(kParameterShard);
  const bool wide = slot == kCastGradient || slot == kReduced || slot == kStagedGradient;
  return wide ? storage_bytes(spec.strategy.gradient_precision) : plan.element_bytes;
}

}  // namespace orrery
