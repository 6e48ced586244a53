// Copies between the device, its host and a disk.
#include <algorithm>

#include "exec/cpu_call.h"
#include "models/blocks.h"

namespace orrery {
namespace {

// Bytes of one buffer, from `first` on, to those of another.
void move(const Argument& from, std::int64_t from_first, const Argument& to, std::int64_t to_first,
          std::int64_t bytes) {
  const auto n = static_cast<std::size_t>(bytes);
  if (from.disk != nullptr)
    from.disk->read(to.data + to_first, from.at + from_first, n);
  else if (to.disk != nullptr)
    to.disk->write(from.data + from_first, to.at + to_first, n);
  else
    std::copy_n(from.data + from_first, n, to.data + to_first);
}

// A tile's elements are some of the rank's shards, which lie apart in a buffer of the whole chunk.
void move_tile(const CpuCall& c, const PlaceCopy& work) {
  const Argument &from = c.reads[0], &to = c.writes[0];
  const auto place = [&](const Argument& a, const Piece& piece) {
    const bool tile = a.operand.scope == Scope::own;
    return (tile ? piece.shard_first - work.first : place_of(a, piece)) * work.width;
  };
  for (const Piece& piece : pieces_within(c, work.first, work.elements))
    move(from, place(from, piece), to, place(to, piece), piece.owned * work.width);
}

// What this rank owns of a run of the chunk; a fused buffer holds that run alone.
void move_owned(const CpuCall& c, const PlaceCopy& work) {
  const Argument &from = c.reads[0], &to = c.writes[0];
  const auto place = [&](const Argument& a, const Piece& piece) {
    return a.operand.scope == Scope::rank ? piece.owned_first - work.first : place_of(a, piece);
  };
  for (const Piece& piece : pieces_of(c)) {
    const std::int64_t begin = std::max(piece.owned_first, work.first);
    const std::int64_t end = std::min(piece.owned_first + piece.owned, work.first + work.elements);
    const std::int64_t skipped = begin - piece.owned_first;
    if (begin >= end) continue;
    move(from, (place(from, piece) + skipped) * work.width, to, (place(to, piece) + skipped) * work.width,
         (end - begin) * work.width);
  }
}

}  // namespace

void run_copy(const CpuCall& c, const PlaceCopy& work) {
  const BlockRole role = c.rank.plan.blocks[c.frame.block].role;
  if (role == BlockRole::tile) return move_tile(c, work);
  if (role == BlockRole::state) return move_owned(c, work);
  const bool part = work.from == work.to && c.reads[0].bytes > work.bytes;
  move(c.reads[0], part ? c.rank.seat(Dimension::tensor).index * work.bytes : 0, c.writes[0], 0, work.bytes);
}

}  // namespace orrery
