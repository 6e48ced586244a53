#pragma once

#include "models/layout/draft.h"

namespace orrery {

struct BucketPlace {
  Chunk* chunk = nullptr;
  Bucket* bucket = nullptr;
};

// Buckets hold weights in the order in which backward finishes them: from the last block to the first, within a block
// from its last weight to its first. Where each rank owns a piece of every bucket, regions bound the buckets: all
// regions of a unit where units are reduced one by one, so that a rank gathers what it has updated, else that of a tied
// matrix (Megatron-Core gives it a bucket of its own too). Experts' weights are in buckets of their own.
void make_buckets(Draft& draft, Chunk& chunk);
// Counts the gradients that each bucket waits for: in whatever order and in however many parts a micro-batch runs back,
// every op of backward runs once.
void count_gradients(Draft& draft);
// The bucket to which an op's operand adds a weight's gradient, if any. A tied output, and the token lookups of further
// predictions, add to the embedding's table.
BucketPlace bucket_of(Draft& draft, Chunk& chunk, std::size_t e, const Operand& operand);

}  // namespace orrery
