#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "models/layout/buckets.h"
#include "models/layout/replicas.h"
#include "models/layout/unit_frames.h"
#include "models/layout/versions.h"
#include "models/planner/matches.h"
#include "models/planner/post_validation.h"
#include "models/planner/step_part.h"

namespace orrery {

// State that the passes of make_plan() share while a plan grows: the plan itself and, for the slot being emitted, the
// last writer of each buffer. One object serves one call; no pass keeps it.
class PlanBuilder : public StepPart {
 public:
  PlanBuilder(Draft& draft, TaskWriter& writer, PostValidation* validation);

  void begin_slot() override { updates_ = 0; }
  void serve() override;
  void begin_step() override;
  void before_block(const Pass& pass) override;
  void after_backward_op(const Pass& pass, std::size_t e, std::uint32_t op, TaskId task) override;
  void reduce() override;
  void update() override;
  void end_step() override;
  void end_slot() override;

 private:
  // asynchronous.cpp: updates between a micro-batch's forward and its backward.
  std::uint32_t update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to);
  void copy_weights(const Chunk& chunk, std::uint32_t frame);
  std::uint32_t begin_update(const Chunk& chunk, bool in_place);

  // data_parallel.cpp: what the sharding row gathers, reduces and updates, and when.
  void reduce_full_buckets(Chunk& chunk, std::size_t entry, const Op& op, TaskId task);
  std::vector<TaskId> pass(const std::vector<TaskId>& summed, std::uint16_t number);
  void update_chunk(const Chunk& chunk, const std::vector<TaskId>& after);
  void reduce_bucket(Chunk& chunk, const Bucket& bucket, TaskId after);
  void fuse_bucket(const Chunk& chunk, const Bucket& bucket, TaskId after);
  TaskId unfuse_bucket(const Chunk& chunk, const Bucket& bucket);
  void gather_bucket(const Chunk& chunk, const Bucket& bucket, const std::vector<TaskId>& after);
  void gather_buckets();
  void gather_ahead(std::uint32_t unit);
  void copy_buckets_back();
  void unscale(const std::vector<TaskId>& after);
  std::vector<TaskId> gradient_norm(const std::vector<TaskId>& after);

  // shared_gradients.cpp: gradients that ranks of one replica of the model sum.
  bool sums_over_model() const;
  void reduce_what_is_shared();
  void lower_buckets();

  // servers.cpp: weights that ranks of their own hold, or one rank alone updates.
  void hand_out_weights();
  void give_gradients(const Chunk& chunk, const Bucket& bucket, TaskId after);
  void pull_buckets();
  std::vector<TaskId> server_norm(const std::vector<TaskId>& after);
  void update_server(const std::vector<TaskId>& after);

  // offload.cpp: states that lie on the host or on disks, and their way there and back.
  std::vector<TaskId> host_clip(std::vector<TaskId> after);
  std::vector<TaskId> host_unscale(const std::vector<TaskId>& after);
  void update_loss_scale(const std::vector<TaskId>& after);
  void update_on_host(const std::vector<TaskId>& after);
  void update_tiles(const Chunk& chunk, const std::vector<TaskId>& after);
  void fetch_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after);
  void update_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after);
  void store_tile(std::uint32_t frame, std::int64_t first, std::int64_t n);
  void raise_tile(std::uint32_t frame, std::int64_t first, std::int64_t n);
  void finish_delayed();

  // Whether a bucket is reduced as soon as backward has finished it. Copies of the model finish their buckets in other
  // orders; a master takes buckets when all are complete.
  bool reduces_early() const { return spec_.strategy.overlap.gradient_reduce && schedule_.copies == 1 && !row_.master; }
  // Tensors in the call for a bucket: one, unless the stack gives all its parameters to one coalesced call.
  std::int64_t tensors_in(const Bucket& bucket) const {
    return spec_.software.sharded_in_one_bucket && row_.shards_optimizer ? bucket.tensors : 1;
  }
  PostValidation* validation_;

  // State while one slot is being emitted.
  std::int64_t updates_ = 0;  // updates emitted so far
  // Buckets to gather after an update, in forward's order
  std::vector<std::pair<const Chunk*, const Bucket*>> to_gather_;
  std::size_t gathering_ = 0;         // how many of to_gather_ are issued
  std::vector<std::int64_t> pushed_;  // first elements of buckets, in the order in which workers push them
};

}  // namespace orrery
