#pragma once

#include "models/layout/draft.h"

namespace orrery {

struct BucketPlace {
  Chunk* chunk = nullptr;
  Bucket* bucket = nullptr;
};

// Makes the gradient buckets of a chunk: fills them with weights in the order in which backward finishes them, from the
// last block to the first, and within a block from its last weight to its first. If units are reduced one by one, a
// bucket also ends at the end of every region (a part of a unit that is sharded by itself, unit_frames.h), so that a
// rank gathers the same parts that it has updated; otherwise only an embedding matrix that two stages hold gets a
// bucket of its own, as in Megatron-Core. Experts' weights have buckets of their own. If ranks exchange their shards of
// layers (Muon), a bucket ends with every block, so that every rank has an equal share of every layer.
void make_buckets(Draft& draft, Chunk& chunk);
// Counts the gradients that each bucket waits for until it is reduced. The count does not depend on the order of
// backward, nor on whether it runs in parts, because a micro-batch's backward runs every op once.
void count_gradients(Draft& draft);
// Returns the bucket that holds the weight whose gradient an op's operand adds to, if any. A tied output, and the token
// lookups of multi-token prediction, add to the embedding's table. e: index of the op's entry (block) in the chunk.
BucketPlace bucket_of(Draft& draft, Chunk& chunk, std::size_t e, const Operand& operand);

}  // namespace orrery
