#include "exec/host/prepare.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "exec/host/hand_over.h"
#include "exec/host/whole_layers.h"
#include "models/layers/blocks.h"

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

// Returns the model that a task computes: the one that trains, or the frozen one beside it.
const Model& model_of(const Rank& rank, const Launch& launch) {
  const Plan& plan = rank.plan;
  const bool second = plan.blocks[plan.frames[frame_of(rank, launch)].block].second;
  return second ? rank.spec.second->model : rank.spec.model;
}

BlockRole role_of(const Rank& rank, const Launch& launch) {
  return rank.plan.blocks[rank.plan.frames[frame_of(rank, launch)].block].role;
}

// Returns the offset and number of elements, in a flat buffer of a chunk of layers, of each weight that `part` selects
// (weights to be summed over a group, key/value rows, a tied table).
std::vector<std::pair<std::int64_t, std::int64_t>> runs_of(const std::vector<PlacedParameter>& parameters, Part part,
                                                           Dimension group) {
  std::vector<std::pair<std::int64_t, std::int64_t>> runs;
  for (const PlacedParameter& p : parameters) {
    const std::int64_t size = p.local.out * p.local.in, kv = p.local.kv_rows * p.local.in;
    if (part == Part::partial && p.local.summed_over(group)) runs.emplace_back(p.first, size);
    if (part == Part::kv && kv > 0) runs.emplace_back(p.first + size - kv, kv);
    if (part == Part::tied && p.name == kEmbeddingTable) runs.emplace_back(p.first, size);
  }
  return runs;
}

// Returns the addresses of the elements that an operand selects (Part) in a flat buffer. In a buffer of shards, only
// elements that this rank owns are selected; in an op of a unit (parameters that are gathered together), only elements
// of the unit.
std::vector<Packed::Run> places_of(const Rank& rank, const Launch& launch, const Argument& a, Dimension group) {
  std::vector<Packed::Run> places;
  const std::uint32_t own = frame_of(rank, launch);
  const bool of_unit = role_of(rank, launch) == BlockRole::unit;
  const std::uint32_t state = of_unit ? rank.plan.frames[own].state : own;
  const std::vector<Piece>& pieces = of_unit ? rank.unit_pieces.at(own) : rank.pieces.at(state);
  // Number of elements of the rank's shards that come before the op's buffer, if that buffer holds only a unit
  // (parameters that are gathered together).
  const std::int64_t before = of_unit ? pieces.front().shard_first : 0;
  const auto add = [&](std::int64_t element, std::int64_t n) {
    places.push_back({a.data + element * a.width, static_cast<std::size_t>(n * a.width)});
  };
  for (const auto& [first, n] : runs_of(rank.parameters.at(state), a.operand.part, group)) {
    if (!of_unit && !shard(a)) {
      add(first, n);
      continue;
    }
    for (const Piece& piece : pieces) {
      const std::int64_t begin = std::max(first, piece.owned_first);
      const std::int64_t end = std::min(first + n, piece.owned_first + piece.owned);
      if (begin < end) add(piece.shard_first - before + begin - piece.owned_first, end - begin);
    }
  }
  return places;
}

void prepare_all_reduce(const Rank& rank, const Collective& work, const Launch& launch, PreparedCollective& p) {
  const Argument& a = *Sorted(launch).update;
  p.call.counts = {work.bytes / work.width};
  p.call.out = a.data;
  if (a.operand.part != Part::all) {
    p.packed.runs = places_of(rank, launch, a, work.group);
    p.call.counts = {p.packed.bytes() / a.width};
    p.call.out = nullptr;
    if (p.packed.runs.size() == 1) {  // one contiguous range of bytes is sent directly, without packing
      p.call.out = p.packed.runs[0].at;
      p.packed.runs.clear();
    }
  } else if (a.operand.scope != Scope::rank) {
    // A bucket's data begin at element work.first of its chunk's flat buffer; the data of a unit (parameters that are
    // gathered together) begin at element work.first of this rank's shard.
    p.call.out = a.data + work.first * a.width;
  }
  p.call.in = p.call.out;
}

// Prepares an all-gather or reduce-scatter of a bucket in place: this rank's piece lies inside the complete bucket.
void prepare_bucket(const Rank& rank, const Collective& work, const Argument& a, CollectiveCall& call) {
  const GroupPosition& seat = rank.position_in(work.group);
  const std::int64_t elements = work.bytes / work.width;
  std::byte* whole =
      // A flat buffer holds all buckets of a chunk of layers; a fused buffer holds only this bucket.
      a.data + (a.operand.scope == Scope::state ? work.first * a.width : 0);
  std::byte* own = whole + std::min(seat.index * ceil_div(elements, seat.size), elements) * work.width;
  const bool gathers = work.kind == CollectiveKind::all_gather;
  call.in = gathers ? own : whole;
  call.out = gathers ? whole : own;
}

// Prepares a push of gradients or a pull of weights, between a worker's flat buffer and the shard of a parameter
// server.
void prepare_service(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call) {
  const Argument& a = launch.arguments.front();
  std::int64_t first = work.first;
  if (shard(a)) {
    const auto& pieces = rank.pieces.at(frame_of(rank, launch));
    const auto own = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.first == work.first; });
    assert(own != pieces.end());
    first = own->shard_first;
  }
  call.counts = cut(work.bytes / work.width, work.servers);
  call.copies = static_cast<int>(work.copies);
  std::byte* at = a.data + first * a.width;
  if (a.operand.access == Access::read)
    call.in = at;
  else
    call.out = at;
}

// Prepares a broadcast of a complete bucket from the root, or the reduction of a bucket to the root. Input and result
// are one buffer or two.
void prepare_root(const Collective& work, const Launch& launch, CollectiveCall& call) {
  const Sorted sorted(launch);
  call.counts = {work.bytes / work.width};
  call.root = static_cast<int>(work.root);
  // If the op neither reads nor updates a buffer, this rank is not the root but only receives the root's data.
  if (sorted.read == nullptr && sorted.update == nullptr) {
    call.in = call.out = sorted.write->data;
  } else if (sorted.read == nullptr) {
    call.in = call.out = sorted.update->data + work.first * sorted.update->width;
  } else {
    call.in = sorted.read->data;
    call.out = (sorted.write != nullptr ? sorted.write : sorted.update)->data;
  }
}

// Prepares a gather or scatter of pieces of a micro-batch between the first member of a group, which holds the complete
// micro-batch, and each member.
void prepare_pieces(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call) {
  const Sorted sorted(launch);
  // elements with 8 bytes are token ids, which are moved as bytes
  call.element = work.width == 8 ? Element::bytes : call.element;
  const Bytes width = work.width == 8 ? 1 : work.width;
  call.counts = cut(work.bytes / width, rank.position_in(work.group).size);
  call.in = sorted.read != nullptr ? sorted.read->data : nullptr;
  call.out = sorted.write != nullptr ? sorted.write->data : nullptr;
}

// Prepares a collective on one of the regions into which the parameters of a unit (parameters that are gathered
// together) are divided. This rank owns a piece of each region; its pieces lie one after the other in the rank's
// shards.
void prepare_unit(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call) {
  const Sorted sorted(launch);
  const std::uint32_t unit = frame_of(rank, launch);
  const Frame& frame = rank.plan.frames[unit];
  const bool frozen = sorted.write != nullptr && sorted.write->operand.slot == kGatheredFrozen;
  const std::vector<Piece> pieces = frozen ? rank.frozen_pieces_of_unit(unit) : rank.unit_pieces.at(unit);
  const std::int64_t first = (frozen ? frame.frozen_base : frame.base) + work.first;
  const auto piece = std::find_if(pieces.begin(), pieces.end(), [&](const Piece& x) { return x.first == first; });
  assert(piece != pieces.end());
  const std::int64_t in_shard = piece->shard_first - pieces.front().shard_first;
  const bool gathers = work.kind == CollectiveKind::all_gather;
  const Argument& from = *sorted.read;
  const Argument& to = sorted.write != nullptr ? *sorted.write : *sorted.update;
  call.in = from.data + (gathers ? in_shard : work.first) * from.width;
  call.out = to.data + (gathers ? work.first : in_shard) * to.width;
  call.add = sorted.update != nullptr;
}

// Returns the number of token rows to send to each member of a group, or to receive from it. `counts` has the number of
// rows for each expert; it is divided into equal ranges, one per member, and each range is summed.
std::vector<std::int64_t> rows_by_member(const Argument& counts, std::int64_t members) {
  const auto* numbers = reinterpret_cast<const std::int32_t*>(counts.data);
  const Bytes each = counts.bytes / 4 / members;
  std::vector<std::int64_t> rows;
  for (std::int64_t m = 0; m < members; ++m)
    rows.push_back(std::accumulate(numbers + m * each, numbers + (m + 1) * each, std::int64_t{0}));
  return rows;
}

// Returns the token of every row that is sent to experts, computed from the row of each (token, choice) pair; -1 for
// padding rows.
std::vector<std::int32_t> tokens_of(const Argument& routing, std::int64_t top_k, std::int64_t rows) {
  const std::int64_t choices = routing.bytes / 8;
  const auto* places = reinterpret_cast<const std::int32_t*>(routing.data) + choices;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows), -1);
  for (std::int64_t i = 0; i < choices; ++i) {
    if (places[i] >= 0) tokens[static_cast<std::size_t>(places[i])] = static_cast<std::int32_t>(i / top_k);
  }
  return tokens;
}

// Prepares an all-to-all of token rows to experts or back, or a gather among the ranks that an expert is cut over. The
// first operand is the data. The next ones, if any, are the numbers of rows: sent and received for an all-to-all, of
// each member for a gather; without them all pieces have the same size. If a token's rows are sent to a node only once,
// a further operand is the routing, which tells each row's token (-1: padding).
void prepare_tokens(const Rank& rank, const Collective& work, const Launch& launch, CollectiveCall& call) {
  std::vector<const Argument*> reads;
  for (const Argument& a : launch.arguments) {
    if (a.operand.access == Access::read) reads.push_back(&a);
  }
  const std::int64_t members = rank.position_in(work.group).size;
  if (work.algorithm.starts_with("hierarchical")) {
    for (const std::int32_t member : rank.group(work.group))
      call.nodes.push_back(member / std::max(1, rank.spec.cluster.gpus_per_node));
  }
  call.in = reads[0]->data;
  call.out = Sorted(launch).write->data;
  const bool exchanges = work.kind == CollectiveKind::all_to_all;
  const auto by_tokens = [&](std::int64_t columns) {
    call.row = columns;
    call.sums = work.algorithm == "hierarchical sum";
    const auto& here = call.sums ? call.received : call.counts;
    const std::int64_t rows = std::accumulate(here.begin(), here.end(), std::int64_t{0}) / columns;
    call.tokens = tokens_of(*reads.back(), model_of(rank, launch).moe->top_k, rows);
  };
  if (reads.size() == 1 || (exchanges && reads.size() == 2)) {
    const std::int64_t each = work.bytes / work.width / members;
    call.counts.assign(exchanges && reads.size() == 1 ? 1 : static_cast<std::size_t>(members), each);
    if (reads.size() == 1) return;
    call.received = call.counts;
    return by_tokens(model_of(rank, launch).hidden);
  }
  const std::int64_t columns = reads[0]->row / work.width;
  const auto elements = [&](const Argument& counts) {
    std::vector<std::int64_t> n = rows_by_member(counts, members);
    for (std::int64_t& x : n) x *= columns;
    return n;
  };
  call.counts = elements(*reads[1]);
  if (reads.size() > 2) call.received = elements(*reads[2]);
  if (reads.size() > 3) by_tokens(columns);
}

// Prepares step n of a ring exchange. The buffer has a part of every member. This rank sends to the next member the
// part of the member n - 1 places before this rank, which it received in step n - 1 (its own part in step 1), and
// receives the part of the member n places before this rank.
void prepare_ring(const Rank& rank, const Collective& work, const Launch& launch, PreparedCollective& p) {
  const Sorted sorted(launch);
  const GroupPosition& seat = rank.position_in(work.group);
  const std::int64_t before = work.first * work.width / work.bytes;
  const auto part = [&](std::int64_t places) {
    return sorted.write->data + (seat.index - places + seat.size) % seat.size * work.bytes;
  };
  p.call.in = part(before - 1);
  p.call.out = part(before);
  if (before > 1) return;
  p.placed.runs = {{sorted.read->data, static_cast<std::size_t>(work.bytes)}};
  p.to = part(0);
}

}  // namespace

void copy_on_host(std::byte* to, const std::byte* from, std::size_t bytes) { std::copy_n(from, bytes, to); }

Bytes Packed::bytes() const {
  return std::accumulate(runs.begin(), runs.end(), Bytes{0},
                         [](Bytes sum, const Run& r) { return sum + static_cast<Bytes>(r.bytes); });
}

void Packed::pack(std::byte* to, const Copy& copy) const {
  for (const Run& r : runs) {
    copy(to, r.at, r.bytes);
    to += r.bytes;
  }
}

void Packed::unpack(const std::byte* from, const Copy& copy) const {
  for (const Run& r : runs) {
    copy(r.at, from, r.bytes);
    from += r.bytes;
  }
}

void PreparedCollective::pack_into(std::byte* memory, const Copy& copy) {
  packed.pack(memory, copy);
  call.in = call.out = memory;
}

std::vector<std::int64_t> cut(std::int64_t elements, std::int64_t members) {
  const std::int64_t size = ceil_div(elements, members);
  std::vector<std::int64_t> counts;
  for (std::int64_t i = 0; i < members; ++i) counts.push_back(std::clamp<std::int64_t>(elements - i * size, 0, size));
  return counts;
}

// Returns the arguments of a collective's transport call, without the addresses of its buffers.
static CollectiveCall described(const Rank& rank, const Collective& work) {
  CollectiveCall call;
  call.kind = work.kind;
  call.reduction = work.maximum ? Reduction::maximum : Reduction::sum;
  const Element half = rank.format16() == kernels::Format16::fp16 ? Element::fp16 : Element::bf16;
  call.element = work.width == 1   ? Element::bytes
                 : work.width == 2 ? half
                 : work.width == 8 ? Element::f64
                                   : Element::f32;
  call.group = work.group;
  // The algorithms kUserBuffers and kCopyEngines stand for collectives that Transformer Engine overlaps with pieces of
  // a matrix product. The executor runs them as the library's collectives.
  const bool beside = work.algorithm == kUserBuffers || work.algorithm == kCopyEngines;
  call.algorithm = beside ? "library" : work.algorithm;
  return call;
}

// Prepares an all-gather, a reduce-scatter, an all-to-all or a shift (each rank sends to the next), in which every rank
// has a part of equal size (the last ones may be shorter).
static void prepare_parts(const Rank& rank, const Collective& work, const Launch& launch, PreparedCollective& p) {
  const std::int64_t elements = work.bytes / work.width, members = rank.position_in(work.group).size;
  const bool pieces = work.kind == CollectiveKind::all_gather || work.kind == CollectiveKind::reduce_scatter;
  p.call.counts = work.kind == CollectiveKind::all_to_all ? std::vector{elements / members}
                  : pieces                                ? cut(elements, members)
                                                          : std::vector{elements};
  const Sorted sorted(launch);
  if (role_of(rank, launch) == BlockRole::unit) {
    prepare_unit(rank, work, launch, p.call);
  } else if (role_of(rank, launch) == BlockRole::state) {
    prepare_bucket(rank, work, sorted.write != nullptr ? *sorted.write : *sorted.update, p.call);
  } else if (work.kind == CollectiveKind::shift && work.first > 0) {
    prepare_ring(rank, work, launch, p);
    // If this collective moves only one of several pieces of a buffer, the addresses skip the pieces before it, in the
    // input as well as in the output.
  } else {
    const Bytes first = work.first * work.width;
    p.call.in = sorted.read->data + first;
    p.call.out = (sorted.write != nullptr ? sorted.write : sorted.update)->data + first / members;
  }
}

PreparedCollective prepare(const Rank& rank, const Collective& work, const Launch& launch) {
  PreparedCollective p;
  p.call = described(rank, work);
  if (work.group == Dimension::hand_over) {
    prepare_hand_over(rank, work, launch, p.call);
    return p;
  }
  if (moves_layers(rank, launch)) {
    prepare_layers(rank, work, launch, p.call);
    return p;
  }
  switch (work.kind) {
    case CollectiveKind::all_reduce:
      prepare_all_reduce(rank, work, launch, p);
      return p;
    case CollectiveKind::push:
    case CollectiveKind::pull:
      prepare_service(rank, work, launch, p.call);
      return p;
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      prepare_pieces(rank, work, launch, p.call);
      return p;
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce:
      prepare_root(work, launch, p.call);
      return p;
    default:
      break;
  }
  if (work.group == Dimension::expert || work.group == Dimension::expert_tensor)
    prepare_tokens(rank, work, launch, p.call);
  else
    prepare_parts(rank, work, launch, p);
  return p;
}

MessageCall prepare(const Rank& rank, const Transfer& work, const Launch& launch) {
  const auto& stages = rank.group(Dimension::pipeline);
  const auto n = static_cast<std::int64_t>(stages.size());
  const std::int64_t at = rank.position_in(Dimension::pipeline).index;
  return {work.send, stages[static_cast<std::size_t>((at + work.offset + n) % n)],
          launch.arguments.front().data + work.first, work.bytes};
}

}  // namespace orrery
