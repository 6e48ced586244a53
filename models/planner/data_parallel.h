#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "models/planner/servers.h"
#include "models/planner/step_part.h"

namespace orrery {

// Reduction of gradients that stay whole until they are reduced bucket by bucket (DistributedDataParallel, ZeRO-1).
class BucketReduction : public StepPart {
 public:
  // servers: parameter servers or a master rank that take the gradients, else null.
  BucketReduction(Draft& draft, TaskWriter& writer, Servers* servers) : StepPart(draft, writer), servers_(servers) {}

  void after_backward_op(const Pass& pass, std::size_t entry, std::uint32_t op, TaskId task) override;
  void reduce() override;
  void end_step() override;  // the next update begins with gradients of its own

 private:
  // Whether a bucket is reduced as soon as backward has finished it. Copies of the model finish their buckets in
  // different orders, so not with these; a master takes buckets when all are complete.
  bool reduces_early() const { return spec_.strategy.overlap.gradient_reduce && schedule_.copies == 1 && !row_.master; }
  void reduce_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after);
  void reduce_again(const Chunk& chunk, Bucket& bucket, TaskId after);
  void fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after);
  TaskId unfuse_bucket(const Chunk& chunk, const Bucket& bucket);
  void copy_back();
  void copy_back(const Chunk& chunk, const Bucket& bucket);

  Servers* servers_;
};

// All-gathers of parameters after every rank has updated its own shard (ZeRO-1 and 2). With overlap, the gathers of the
// last update run during the next step's first forward.
class ParameterGather : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override;
  void begin_step() override;
  void before_block(const Pass& pass) override;
  void end_step() override;

 private:
  void gather_first();
  void gather_ahead(std::uint32_t unit);
  void gather_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after);

  std::vector<std::pair<const Chunk*, const Bucket*>> to_gather_;  // buckets in the order in which forward uses them
  std::size_t gathering_ = 0;                                      // how many of to_gather_ are issued
};

}  // namespace orrery
