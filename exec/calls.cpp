#include "exec/calls.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "models/blocks.h"

namespace orrery {
namespace {

struct Sorted {
  explicit Sorted(const Launch& launch) {
    for (const Argument& a : launch.arguments) {
      const Access access = a.operand.access;
      (access == Access::read ? read : access == Access::write ? write : update) = &a;
    }
  }
  const Argument *read = nullptr, *write = nullptr, *update = nullptr;
};

std::uint32_t frame_of(const Rank& rank, const Launch& launch) { return rank.plan.tasks[launch.task].frame; }

bool shard(const Argument& a) { return a.operand.slot == kGradientShard || a.operand.slot == kParameterShard; }

// Where a range of the chunk's flat buffers lies: in whole buffers at its place, in shards at that of its unit.
std::byte* range_in(const Rank& rank, const Launch& launch, const Argument& a, std::int64_t first) {
  if (!shard(a)) return a.data + first * a.width;
  const auto& pieces = rank.pieces.at(frame_of(rank, launch));
  const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.first == first; });
  assert(piece != pieces.end());
  return a.data + piece->shard_first * a.width;
}

// The weights of which each tensor rank has a part of the gradient, as far as this rank owns them.
std::vector<Packed::Run> partial_runs(const Rank& rank, const Launch& launch, const Argument& a) {
  std::vector<Packed::Run> runs;
  const std::uint32_t state = frame_of(rank, launch);
  const auto add = [&](std::int64_t element, std::int64_t n) {
    runs.push_back({a.data + element * a.width, static_cast<std::size_t>(n * a.width)});
  };
  for (const PlacedParameter& p : rank.parameters.at(state)) {
    if (!p.local.partial) continue;
    const std::int64_t size = p.local.out * p.local.in;
    if (!shard(a)) {
      add(p.first, size);
      continue;
    }
    for (const Piece& piece : rank.pieces.at(state)) {
      const std::int64_t begin = std::max(p.first, piece.owned_first);
      const std::int64_t end = std::min(p.first + size, piece.owned_first + piece.owned);
      if (begin < end) add(piece.shard_first + begin - piece.owned_first, end - begin);
    }
  }
  return runs;
}

void prepare_all_reduce(const Rank& rank, const Collective& work, const Launch& launch, PreparedCollective& p) {
  const Argument& a = *Sorted(launch).update;
  p.call.counts = {work.bytes / work.width};
  if (work.extent == Extent::partial) {
    p.packed.runs = partial_runs(rank, launch, a);
    p.packed.pack();
    p.call.counts = {static_cast<std::int64_t>(p.packed.buffer.size()) / a.width};
    p.call.out = p.packed.buffer.data();
  } else {
    p.call.out = work.extent == Extent::range ? range_in(rank, launch, a, work.first) : a.data;
  }
  p.call.in = p.call.out;
}

}  // namespace

void Packed::pack() {
  std::size_t bytes = 0;
  for (const Run& r : runs) bytes += r.bytes;
  buffer.resize(bytes);
  std::byte* to = buffer.data();
  for (const Run& r : runs) {
    std::memcpy(to, r.at, r.bytes);
    to += r.bytes;
  }
}

void Packed::unpack() const {
  const std::byte* from = buffer.data();
  for (const Run& r : runs) {
    std::memcpy(r.at, from, r.bytes);
    from += r.bytes;
  }
}

std::vector<std::int64_t> cut(std::int64_t elements, std::int64_t members) {
  const std::int64_t size = ceil_div(elements, members);
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < members; ++i) counts.push_back(std::clamp<std::int64_t>(elements - i * size, 0, size));
  return counts;
}

PreparedCollective prepare(const Rank& rank, const Collective& work, const Launch& launch) {
  const Seat& seat = rank.seat(work.group);
  PreparedCollective p;
  p.call.kind = work.kind;
  p.call.reduction = work.reduction;
  p.call.element = work.width == 2 ? Element::bf16 : Element::f32;
  p.call.group = work.group;
  p.call.algorithm = work.algorithm;
  if (work.kind == CollectiveKind::all_reduce) {
    prepare_all_reduce(rank, work, launch, p);
    return p;
  }
  const Sorted sorted(launch);
  const std::int64_t elements = work.bytes / work.width;
  const bool gathers = work.kind == CollectiveKind::all_gather;
  p.call.counts = cut(elements, seat.size);
  if (work.extent == Extent::range) {  // in place: this rank's piece lies in the whole
    const Argument& a = *(gathers ? sorted.write : sorted.update);
    std::byte* whole = range_in(rank, launch, a, work.first);
    std::byte* own = whole + std::min(seat.index * ceil_div(elements, seat.size), elements) * work.width;
    p.call.in = gathers ? own : whole;
    p.call.out = gathers ? whole : own;
    return p;
  }
  p.call.in = sorted.read->data;
  p.call.add = sorted.update != nullptr;
  p.call.out = (p.call.add ? sorted.update : sorted.write)->data;
  return p;
}

MessageCall prepare(const Rank& rank, const Transfer& work, const Launch& launch) {
  const auto& stages = rank.group(Dimension::pipeline);
  const auto n = static_cast<std::int64_t>(stages.size());
  const std::int64_t at = rank.seat(Dimension::pipeline).index;
  return {work.send, stages[static_cast<std::size_t>((at + work.offset + n) % n)], launch.arguments.front().data,
          work.bytes};
}

}  // namespace orrery
