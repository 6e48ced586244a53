#include "exec/transport/chunks.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include <fmt/format.h>

#include "exec/transport/combine.h"
#include "models/base/error.h"

namespace orrery {
namespace {

std::byte* bytes_at(const void* data) { return static_cast<std::byte*>(const_cast<void*>(data)); }

// Divides a buffer of `total` elements into chunks: equal pieces, of which the last may be shorter or empty.
std::vector<ChunkMemory> equal_chunks(void* data, std::int64_t total, int chunks, std::int64_t width) {
  const std::int64_t piece = ceil_div(total, chunks);
  std::vector<ChunkMemory> result;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = std::min(chunk * piece, total), last = std::min(first + piece, total);
    result.push_back({bytes_at(data) + first * width, (last - first) * width});
  }
  return result;
}

std::vector<ChunkMemory> counted_chunks(void* data, const std::vector<std::int64_t>& counts, std::int64_t width) {
  std::vector<ChunkMemory> result;
  std::byte* at = bytes_at(data);
  for (const std::int64_t count : counts) {
    result.push_back({at, count * width});
    at += count * width;
  }
  return result;
}

// Returns the chunks of an all-to-all among n members: chunk s*n+d is the data that member s has for member d.
std::vector<ChunkMemory> exchanged_chunks(const CollectiveCall& call, int member, int members, Bytes bytes) {
  std::vector<ChunkMemory> result;
  for (int src = 0; src < members; ++src) {
    for (int dst = 0; dst < members; ++dst) {
      std::byte* at = dst == member   ? bytes_at(call.out) + src * bytes
                      : src == member ? bytes_at(call.in) + dst * bytes
                                      : nullptr;
      result.push_back({at, bytes});
    }
  }
  return result;
}

// Returns the chunks of a shift (each member sends to the next): chunk m is the data that member m sends.
std::vector<ChunkMemory> passed_chunks(const CollectiveCall& call, int member, int members, Bytes bytes) {
  std::vector<ChunkMemory> result(static_cast<std::size_t>(members), {nullptr, bytes});
  result[static_cast<std::size_t>((member + members - 1) % members)].at = bytes_at(call.out);
  result[static_cast<std::size_t>(member)].at = bytes_at(call.in);
  return result;
}

// Returns the chunks of a gather or scatter: chunk m belongs to member m; member 0, the root, has all chunks.
std::vector<ChunkMemory> rooted_chunks(const CollectiveCall& call, int member, std::int64_t width) {
  const bool gathers = call.kind == CollectiveKind::gather;
  if (member == 0) return counted_chunks(gathers ? call.out : const_cast<void*>(call.in), call.counts, width);
  std::vector<ChunkMemory> result(call.counts.size());
  result[static_cast<std::size_t>(member)] = {bytes_at(gathers ? call.in : call.out),
                                              call.counts[static_cast<std::size_t>(member)] * width};
  return result;
}

// Returns the chunks of a push or pull: chunk s belongs to parameter server s; workers have all chunks.
std::vector<ChunkMemory> served_chunks(const CollectiveCall& call, int member, int members, std::int64_t width) {
  const auto servers = static_cast<int>(call.counts.size());
  const int server = member - (members - servers);
  const bool pushes = call.kind == CollectiveKind::push;
  const bool reads = pushes == (server < 0);
  void* at = reads ? const_cast<void*>(call.in) : call.out;
  if (server < 0) return counted_chunks(at, call.counts, width);
  std::vector<ChunkMemory> result(call.counts.size());
  const auto piece = static_cast<std::size_t>(server);
  result[piece] = {bytes_at(at), call.counts[piece] * width};
  return result;
}

}  // namespace

std::vector<ChunkMemory> chunks_of(const CollectiveCall& call, int member, int members, int chunks, std::byte* sums) {
  const std::int64_t width = width_of(call.element);
  switch (call.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
      return equal_chunks(call.out, call.counts[0], chunks, width);
    case CollectiveKind::reduce:  // a reduce sums in `in`, which it may overwrite on all members
      return equal_chunks(bytes_at(call.in), call.counts[0], chunks, width);
    case CollectiveKind::all_gather:
      return counted_chunks(call.out, call.counts, width);
    case CollectiveKind::reduce_scatter:
      return counted_chunks(sums, call.counts, width);
    case CollectiveKind::all_to_all:
      return exchanged_chunks(call, member, members, call.counts[0] * width);
    case CollectiveKind::shift:
      return passed_chunks(call, member, members, call.counts[0] * width);
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return rooted_chunks(call, member, width);
    case CollectiveKind::push:
    case CollectiveKind::pull:
      return served_chunks(call, member, members, width);
  }
  return {};
}

std::int64_t elements_before(const CollectiveCall& call, int member) {
  return std::accumulate(call.counts.begin(), call.counts.begin() + member, std::int64_t{0});
}

bool in_place(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce;
}

bool reduces(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::reduce || kind == CollectiveKind::push;
}

Moves moves_of(const CollectiveCall& call, int members) {
  if (is_star(call.kind)) {
    assert(call.copies == 1);  // pushes and pulls with several servers per piece are carried out by exec/mpi/chains.h
    return star_moves(call.kind, members, static_cast<int>(call.counts.size()));
  }
  if (call.algorithm == "library") return {};
  const CollectiveAlgorithm& algorithm = find_collective(call.algorithm);
  if (algorithm.kind != call.kind) {
    throw Error(fmt::format("collective {}: it carries out {}, not {}; name one that fits", algorithm.name,
                            name_of(algorithm.kind), name_of(call.kind)));
  }
  Moves all = algorithm.moves(members);
  for (Move& m : all.moves) {  // renumbers members, because the algorithm's moves are for root 0
    m.src = (m.src + call.root) % members;
    m.dst = (m.dst + call.root) % members;
  }
  return all;
}

void check_call(const CollectiveCall& call, int members) {
  const bool pieces = call.kind == CollectiveKind::all_gather || call.kind == CollectiveKind::reduce_scatter ||
                      call.kind == CollectiveKind::gather || call.kind == CollectiveKind::scatter;
  const bool uneven = call.kind == CollectiveKind::all_to_all && !call.received.empty();
  const bool two_stages =
      call.algorithm.starts_with("hierarchical") && call.nodes.size() == static_cast<std::size_t>(members);
  if (uneven &&
      ((call.algorithm != "library" && !two_stages) || call.received.size() != static_cast<std::size_t>(members)))
    throw Error("transport: an uneven all_to_all needs algorithm library and what comes from every rank");
  const bool serves = call.kind == CollectiveKind::push || call.kind == CollectiveKind::pull;
  if (serves && (call.counts.empty() || call.counts.size() * call.copies >= static_cast<std::size_t>(members)))
    throw Error(fmt::format("transport: {} among {} ranks has {} counts; give one per server", name_of(call.kind),
                            members, call.counts.size()));
  if (!serves && call.counts.size() != (pieces || uneven ? static_cast<std::size_t>(members) : 1)) {
    throw Error(fmt::format("transport: {} among {} ranks has {} counts; give {}", name_of(call.kind), members,
                            call.counts.size(), pieces ? "one per rank" : "one"));
  }
  if (call.element == Element::bytes && (call.add || reduces(call.kind))) {
    throw Error(
        fmt::format("transport: {} of bytes, which have no sum; name f32, bf16 or fp16 elements", name_of(call.kind)));
  }
  if (call.add && in_place(call.kind)) {
    throw Error(fmt::format("transport: {} has no result beside its input to add to", name_of(call.kind)));
  }
}

}  // namespace orrery
