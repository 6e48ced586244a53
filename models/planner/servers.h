#pragma once

#include <cstdint>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class for weights that only one rank updates (torch's DataParallel), or that parameter servers hold (Li
// et al. 2014, Scaling Distributed Machine Learning with the Parameter Server). Each server owns an equal part of every
// bucket.
class Servers : public StepPart {
 public:
  using StepPart::StepPart;

  void serve() override;  // writes a server's step: an update on the CPU with the sums of pushed gradients
  void begin_step() override;
  void end_step() override;

  // Sends a bucket's gradients to the rank, or to the servers, that update the weights.
  void give(const Chunk& chunk, const Bucket& bucket, TaskId after);

 private:
  void hand_out_weights();
  void pull_buckets();
  std::vector<TaskId> norm(const std::vector<TaskId>& after);
  void update_range(const std::vector<TaskId>& after);

  // for each bucket in the order in which workers push, the index of its first element
  std::vector<std::int64_t> pushed_;
};

}  // namespace orrery
