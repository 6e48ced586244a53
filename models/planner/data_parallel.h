#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/planner/servers.h"
#include "models/planner/step_part.h"

namespace orrery {

// The planner's class that reduces unsharded gradients over data ranks, bucket by bucket (DistributedDataParallel,
// ZeRO-1).
class BucketReduction : public StepPart {
 public:
  // servers: the planner's class for parameter servers or a master rank, if these update the weights, else null.
  BucketReduction(Draft& draft, TaskWriter& writer, Servers* servers) : StepPart(draft, writer), servers_(servers) {}

  void after_backward_op(const Pass& pass, std::size_t entry, std::uint32_t op, TaskId task) override;
  void reduce() override;
  void end_step() override;  // resets, for the next update, the count of gradients that each bucket still lacks

 private:
  // Returns whether a bucket is reduced as soon as backward has finished it. This is not so if there are several copies
  // of the model, which finish their buckets in different orders, nor with a master rank (torch's DataParallel), which
  // reduces buckets when all of them are complete.
  bool reduces_early() const { return spec_.strategy.overlap.gradient_reduce && schedule_.copies == 1 && !row_.master; }
  void reduce_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after);
  void reduce_again(const Chunk& chunk, Bucket& bucket, TaskId after);
  void fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after);
  TaskId unfuse_bucket(const Chunk& chunk, const Bucket& bucket);
  void copy_back();
  void copy_back(const Chunk& chunk, const Bucket& bucket);

  Servers* servers_;
};

// The planner's class that all-gathers parameters after every rank has updated its own shard (ZeRO-1 and 2). With
// overlap, the gathers of the last update run during the next step's first forward, or during the rest of the update.
class ParameterGather : public StepPart {
 public:
  using StepPart::StepPart;

  // Gathers a bucket's parameters as soon as `update`, the task that updates the rank's shard of them, has ended.
  void gather_updated(const Chunk& chunk, const Bucket& bucket, TaskId update);
  void begin_slot() override;
  void begin_step() override;
  void before_block(const Pass& pass) override;
  void end_step() override;

 private:
  void gather_first();
  void gather_ahead(std::uint32_t unit);
  void gather_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after);

  std::vector<std::pair<const Chunk*, const Bucket*>> to_gather_;  // buckets in the order in which forward uses them
  // number of buckets in to_gather_ whose gathers are issued
  std::size_t gathering_ = 0;
};

}  // namespace orrery
