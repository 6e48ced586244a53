#include "models/spec/one_queue.h"

#include <string>

#include "models/spec/sharding.h"

namespace orrery {

bool has_one_queue(const Spec& spec) {
  constexpr int kBlackwell = 100;
  const Strategy& s = spec.strategy;
  if (row_of(s.sharding).shards_parameters || s.overlap.micro_batches) return false;
  const std::string& when = spec.software.one_queue;
  return when == "always" ||
         (when == "before_blackwell" && s.tensor * s.context > 1 && spec.cluster.gpu.compute_capability < kBlackwell);
}

}  // namespace orrery
