#pragma once

#include <cstddef>
#include <vector>

#include "exec/transport/transport.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// The memory of one chunk on a member of a group; null if the member never has the chunk.
struct ChunkMemory {
  std::byte* at = nullptr;
  Bytes bytes = 0;
};

// The chunks of a collective's moves in one member's memory, by chunk number. sums: for a reduce_scatter, memory of as
// many bytes as `in` has, in which it adds up (other kinds do not use it). Elements are cut evenly, the last chunks
// shorter or empty, or as `counts` says.
std::vector<ChunkMemory> chunks_of(const CollectiveCall& call, int member, int members, int chunks, std::byte* sums);

// Number of elements before the member's piece, among the pieces of all members; with the number of members, of all
// pieces.
std::int64_t elements_before(const CollectiveCall& call, int member);

// Throws Error for counts, elements or sums that the kind of collective does not allow.
void check_call(const CollectiveCall& call, int members);
// Chunk moves of the algorithm that the call names; throws Error if it does not carry out the call's kind. "library"
// has no moves.
Moves moves_of(const CollectiveCall& call, int members);

// Whether the kind's result replaces its input (in_place), and whether the kind adds up data (reduces).
bool in_place(CollectiveKind kind);
bool reduces(CollectiveKind kind);

}  // namespace orrery
