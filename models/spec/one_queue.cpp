#include "models/spec/one_queue.h"

#include "models/spec/sharding.h"

namespace orrery {

bool has_one_queue(const Spec& spec) {
  constexpr int kBlackwell = 100;
  const Strategy& s = spec.strategy;
  if (row_of(s.sharding).shards_parameters || s.overlap.micro_batches) return false;
  const OneQueue when = spec.software.communication.one_queue;
  return when == OneQueue::always || (when == OneQueue::before_blackwell && s.tensor * s.context > 1 &&
                                      spec.cluster.gpu.compute_capability < kBlackwell && !is_amd(spec.cluster.gpu));
}

}  // namespace orrery
