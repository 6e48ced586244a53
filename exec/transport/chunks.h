#pragma once

#include <cstddef>
#include <vector>

#include "exec/transport/transport.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// The address of one chunk of a collective's data on one member of a group; null if the member never has the chunk.
struct ChunkMemory {
  std::byte* at = nullptr;
  Bytes bytes = 0;
};

// Returns the memory of each chunk of a collective on one member, by chunk number. sums: memory of as many bytes as
// `in` has, in which a reduce_scatter sums (other kinds do not use it). Elements are divided according to `counts`, or
// evenly; if evenly, the last chunks may be shorter or empty.
std::vector<ChunkMemory> chunks_of(const CollectiveCall& call, int member, int members, int chunks, std::byte* sums);

// Returns the number of elements in the pieces of all members before `member`; if `member` is the number of members, in
// all pieces.
std::int64_t elements_before(const CollectiveCall& call, int member);

// Throws Error for counts, elements or sums that the kind of collective does not allow.
void check_call(const CollectiveCall& call, int members);
// Returns the moves (sends of chunks between two members) of the algorithm that the call names; throws Error if the
// algorithm does not carry out this kind of collective. "library" has no moves.
Moves moves_of(const CollectiveCall& call, int members);

// in_place: whether the result of this kind of collective replaces its input; reduces: whether it sums data.
bool in_place(CollectiveKind kind);
bool reduces(CollectiveKind kind);

}  // namespace orrery
