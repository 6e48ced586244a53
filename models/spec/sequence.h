#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/spec/model.h"
#include "models/spec/strategy.h"

namespace orrery {

// A contiguous range of positions of a sequence.
struct SequencePart {
  std::int64_t first = 0, count = 0;
};

// Returns the positions of a sequence that one block holds under context parallelism, in the order of the block's rows.
// The context group is a ring of blocks, and each block is a group of ranks that exchange heads for positions
// (Ulysses): context rank i belongs to block i / context_ulysses. Block b of n holds the b-th of n parts of the
// sequence; in zigzag order it holds the parts b and 2n - 1 - b of 2n parts, so that the queries of all blocks see
// equally many keys of a causal attention (Megatron-Core, get_batch_on_this_cp_rank; Llama 3 2407.21783, section
// 3.3.2).
std::vector<SequencePart> block_parts(const Strategy& s, std::int64_t sequence, std::int64_t block);
// Returns the positions that one rank of the context parallel group holds: an equal part of the rows of its block (a
// group of ranks that exchange heads by Ulysses).
std::vector<SequencePart> rank_parts(const Strategy& s, std::int64_t sequence, std::int64_t context_rank);

// Returns a message about the first rule of context parallelism that the degrees, the number of heads or the sequence
// length break; "" if they break none.
std::string broken_cut(const Strategy& s, const Model& m, std::int64_t sequence);

// Returns the number of pairs of a query and a key that it attends to: those of the query's own position and of
// positions before it, at most `window` of them (0: no limit). Positions are taken as a continuum, so that the pairs of
// all blocks sum to s^2 / 2 for a complete sequence of s positions.
double visible_pairs(const std::vector<SequencePart>& queries, const std::vector<SequencePart>& keys,
                     std::int64_t window);

// Returns the number of query-key pairs that causal attention computes in one head of a sample: queries of block
// `block`, keys of the block `hops` positions before it on the ring, or keys of the complete sequence if context_kind
// is "allgather".
double pairs_of_block(const Strategy& s, std::int64_t sequence, std::int64_t block, std::int64_t hops,
                      std::int64_t window);

// Returns whether, in every step of ring attention, all blocks (groups of ranks) compute equally many query-key pairs,
// so that all ranks do the same work.
bool blocks_are_alike(const Strategy& s, std::int64_t sequence, std::int64_t window);

}  // namespace orrery
