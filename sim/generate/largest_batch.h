#pragma once

#include <atomic>

#include "sim/generate/generate.h"

namespace orrery {

// Returns the most sequences, over all data ranks, that a generation fits into `most` bytes of each GPU: memory is
// predicted for batches that fill the pipeline evenly (multiples of data x pipeline ranks) until it fits for one and
// not for the next, and then for those between these two; 0 if it fits for none. If the spec states the micro-batch,
// which is then all that working memory depends on, the batch follows from the cache of a sequence. Throws Stopped soon
// after `stop` is set.
std::int64_t largest_batch(const Spec& spec, const Profile& profile, Bytes most,
                           const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
