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
  void begin_step() override;
  void update() override;
  void end_step() override;
  void end_slot() override;

 private:
  // asynchronous.cpp: updates between a micro-batch's forward and its backward.
  std::uint32_t update_frame(const Chunk& chunk, std::uint32_t from, std::uint32_t to);
  void copy_weights(const Chunk& chunk, std::uint32_t frame);
  std::uint32_t begin_update(const Chunk& chunk, bool in_place);

  // data_parallel.cpp: what the sharding row gathers, reduces and updates, and when.
  std::vector<TaskId> pass(const std::vector<TaskId>& summed, std::uint16_t number);
  void update_chunk(const Chunk& chunk, const std::vector<TaskId>& after);
  void unscale(const std::vector<TaskId>& after);
  std::vector<TaskId> gradient_norm(const std::vector<TaskId>& after);

  // shared_gradients.cpp: gradients that ranks of one replica of the model sum.

  // servers.cpp: weights that ranks of their own hold, or one rank alone updates.

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

  PostValidation* validation_;

  // State while one slot is being emitted.
  std::int64_t updates_ = 0;  // updates emitted so far
};

}  // namespace orrery
