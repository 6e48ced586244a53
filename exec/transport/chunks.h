#pragma once

#include <cstddef>
#include <vector>

#include "exec/transport/transport.h"
#include "models/collectives/algorithms.h"

namespace orrery {

// Where a member of a group keeps a chunk, if it ever has it.
struct ChunkMemory {
  std::byte* at = nullptr;
  Bytes bytes = 0;
};

// The chunks of a collective's moves in one member's memory, by number. sums: of a reduce_scatter, memory of as many
// bytes as `in` has, where it adds up (elsewhere not used). Elements are cut evenly, the last chunks shorter or empty,
// or as counts say.
std::vector<ChunkMemory> chunks_of(const CollectiveCall& call, int member, int members, int chunks, std::byte* sums);

// The member's own part: of what it puts into a gather, or gets of a reduce_scatter.
std::int64_t elements_before(const CollectiveCall& call, int member);

// Throws Error for counts, elements or sums that the kind does not have.
void check_call(const CollectiveCall& call, int members);
// Of the named algorithm; throws Error if it does not carry out the call's kind. "library" has none: no moves.
Moves moves_of(const CollectiveCall& call, int members);

// Whether the kind's result replaces its input; whether it adds up.
bool in_place(CollectiveKind kind);
bool reduces(CollectiveKind kind);

}  // namespace orrery
