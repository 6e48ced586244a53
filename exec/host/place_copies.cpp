#include "exec/host/place_copies.h"

#include <algorithm>

#include "models/layers/blocks.h"

namespace orrery {
namespace {

// Returns the contiguous ranges of bytes of a memcpy that moves a tile, a range of elements of the rank's shards. The
// tile is contiguous in a buffer of its own, but may be scattered in a flat buffer of a chunk of layers.
std::vector<PlacedRun> runs_of_tile(const OpCall& c, const PlaceCopy& work) {
  const Argument &from = c.reads[0], &to = c.writes[0];
  const auto place = [&](const Argument& a, const Piece& piece) {
    const bool tile = a.operand.scope == Scope::own;
    return (tile ? piece.shard_first - work.first : offset_of(a, piece)) * work.width;
  };
  std::vector<PlacedRun> runs;
  for (const Piece& piece : pieces_within(c, work.first, work.elements))
    runs.push_back({from, to, place(from, piece), place(to, piece), piece.owned * work.width});
  return runs;
}

// Returns the contiguous ranges of bytes of a memcpy that moves those elements of a chunk of layers that this rank
// owns. The rank's fused buffer (Scope::rank) holds only one bucket; its first element is element work.first of the
// chunk.
std::vector<PlacedRun> runs_owned(const OpCall& c, const PlaceCopy& work) {
  const Argument &from = c.reads[0], &to = c.writes[0];
  const auto place = [&](const Argument& a, const Piece& piece) {
    return a.operand.scope == Scope::rank ? piece.owned_first - work.first : offset_of(a, piece);
  };
  std::vector<PlacedRun> runs;
  for (const Piece& piece : pieces_of(c)) {
    const std::int64_t begin = std::max(piece.owned_first, work.first);
    const std::int64_t end = std::min(piece.owned_first + piece.owned, work.first + work.elements);
    const std::int64_t skipped = begin - piece.owned_first;
    if (begin >= end) continue;
    runs.push_back({from, to, (place(from, piece) + skipped) * work.width, (place(to, piece) + skipped) * work.width,
                    (end - begin) * work.width});
  }
  return runs;
}

}  // namespace

std::vector<PlacedRun> runs_of(const OpCall& c, const PlaceCopy& work) {
  const BlockRole role = c.rank.plan.blocks[c.frame.block].role;
  if (role == BlockRole::tile) return runs_of_tile(c, work);
  if (role == BlockRole::state) return runs_owned(c, work);
  const bool part = work.from == work.to && c.reads[0].bytes > work.bytes;
  const std::int64_t first = part ? c.rank.position_in(Dimension::tensor).index * work.bytes : 0;
  return {{c.reads[0], c.writes[0], first, 0, work.bytes}};
}

void move_on_host(const PlacedRun& run) {
  const auto n = static_cast<std::size_t>(run.bytes);
  if (run.from.disk != nullptr)
    run.from.disk->read(run.to.data + run.to_first, run.from.at + run.from_first, n);
  else if (run.to.disk != nullptr)
    run.to.disk->write(run.from.data + run.from_first, run.to.at + run.to_first, n);
  else
    std::copy_n(run.from.data + run.from_first, n, run.to.data + run.to_first);
}

}  // namespace orrery
