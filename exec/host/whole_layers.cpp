#include "exec/host/whole_layers.h"

#include <algorithm>
#include <cassert>
#include <map>

#include "models/layers/blocks.h"

namespace orrery {
namespace {

// Returns the block of each layer of a chunk; the key is the index of the layer's first element in the flat buffers.
std::map<std::int64_t, std::uint32_t> layers_of(const Rank& rank, std::uint32_t state) {
  std::map<std::int64_t, std::uint32_t> layers;
  for (const Frame& f : rank.plan.frames) {
    if (f.state == state && f.micro_batch == 0 && rank.plan.blocks[f.block].role == BlockRole::layer)
      layers[f.base] = f.block;
  }
  return layers;
}

}  // namespace

LayerRound::LayerRound(const Rank& rank, std::uint32_t state, std::int64_t first)
    : rank_(rank), state_(state), data_ranks_(rank.position_in(Dimension::data).size) {
  const std::map<std::int64_t, std::uint32_t> all = layers_of(rank, state);
  const std::uint32_t block = all.at(first);
  for (auto layer = all.find(first); layer != all.end() && std::ssize(layers_) < data_ranks_; ++layer) {
    if (layer->second == block) layers_.push_back(layer->first);
  }
  block_ = &rank.plan.blocks[block];
  for (const Piece& piece : rank.pieces.at(state)) {
    const std::int64_t begin = std::max(first, piece.first);
    const std::int64_t end = std::min(first + block_->parameter_elements, piece.first + piece.elements);
    if (begin >= end) continue;
    members_ = piece.ranks;
    share_ += ceil_div(end - begin, piece.ranks);
  }
}

std::vector<OwnedRun> LayerRound::runs(std::int64_t layer, std::int64_t member) const {
  std::vector<OwnedRun> result;
  std::int64_t share = 0;
  for (const Piece& piece : rank_.pieces.at(state_)) {
    const std::int64_t begin = std::max(layer, piece.first);
    const std::int64_t end = std::min(layer + block_->parameter_elements, piece.first + piece.elements);
    if (begin >= end) continue;
    // a piece that several ranks share lies within one layer, because buckets and units end with every layer
    assert(piece.ranks == 1 || (begin == piece.first && end == piece.first + piece.elements));
    const std::int64_t each = ceil_div(end - begin, piece.ranks);
    const std::int64_t own = std::min(begin + member * each, end);
    const std::int64_t in_shard = piece.ranks == 1 ? begin - piece.first : 0;
    if (own < end) result.push_back({own, std::min(each, end - own), share, piece.shard_first + in_shard});
    share += each;
  }
  return result;
}

bool moves_layers(const Rank& rank, const Launch& launch) {
  const Operand& o = launch.arguments.front().operand;
  return rank.spec.strategy.optimizer.kind == OptimizerKind::muon && o.scope == Scope::state && o.slot == kBuckets;
}

void prepare_layers(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call) {
  const LayerRound round(rank, rank.plan.tasks[launch.task].frame, work.first);
  const Argument& a = launch.arguments.front();
  const auto at = [&](std::int64_t element) { return a.data + element * a.width; };
  const GroupPosition& seat = rank.position_in(work.group);
  if (work.kind == CollectiveKind::broadcast) {
    call.counts = {round.area()};
    call.root = static_cast<int>(work.root);
    call.in = at(round.own_area());
    call.out = at(round.arrivals_area());
    return;
  }
  if (work.kind == CollectiveKind::all_gather) {
    call.counts.assign(static_cast<std::size_t>(seat.size), round.area());
    call.in = at(round.own_area());
    call.out = at(round.parts_area());
    return;
  }
  // Member i of the group orthogonalizes layer i of the round, if the round has so many layers.
  std::vector<std::int64_t> shares, layer;
  for (std::int64_t i = 0; i < seat.size; ++i) {
    shares.push_back(i < std::ssize(round.layers()) ? round.share() : 0);
    layer.push_back(seat.index < std::ssize(round.layers()) ? round.share() : 0);
  }
  call.counts = work.back ? layer : shares;
  call.received = work.back ? shares : layer;
  call.in = at(work.back ? round.own_area() : LayerRound::shares_area());
  call.out = at(work.back ? LayerRound::shares_area() : round.own_area());
}

}  // namespace orrery
