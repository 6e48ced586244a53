#pragma once

#include "models/layout/draft.h"

namespace orrery {

struct BucketPlace {
  Chunk* chunk = nullptr;
  Bucket* bucket = nullptr;
};

// Makes the gradient buckets of a chunk: fills them with weights in the order in which backward finishes them, from the
// last block to the first, and within a block from its last weight to its first. A bucket also ends where a region ends
// (a part of a unit that is sharded by itself, unit_frames.h). If units are reduced one by one this holds for all
// regions, so that a rank gathers the same parts that it has updated; else only for the region of a tied matrix
// (Megatron-Core gives it a bucket of its own too). Experts' weights have buckets of their own.
void make_buckets(Draft& draft, Chunk& chunk);
// Counts the gradients that each bucket waits for until it is reduced. The count does not depend on the order of
// backward, nor on whether it runs in parts, because a micro-batch's backward runs every op once.
void count_gradients(Draft& draft);
// Returns the bucket that holds the weight whose gradient an op's operand adds to, if any. A tied output, and the token
// lookups of multi-token prediction, add to the embedding's table. e: index of the op's entry (block) in the chunk.
BucketPlace bucket_of(Draft& draft, Chunk& chunk, std::size_t e, const Operand& operand);

}  // namespace orrery
