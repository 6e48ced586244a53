#pragma once

#include <cstdint>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class for an optimizer that runs on the host, with states on the host or on disks: the states are
// updated tile by tile (runs of elements of a fixed number), and each tile is fetched, updated, stored and uploaded,
// one after another. A delayed update runs during the next step.
class HostUpdate : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_step() override;
  void update() override;

 private:
  std::vector<TaskId> clip(std::vector<TaskId> after);
  std::vector<TaskId> unscale(const std::vector<TaskId>& after);
  void update_loss_scale(const std::vector<TaskId>& after);
  void update_all(const std::vector<TaskId>& after);
  void update_tiles(const Chunk& chunk, const std::vector<TaskId>& after);
  void fetch_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after);
  void update_tile(std::uint32_t frame, std::int64_t first, std::int64_t n, const std::vector<TaskId>& after);
  void store_tile(std::uint32_t frame, std::int64_t first, std::int64_t n);
  void upload_tile(std::uint32_t frame, std::int64_t first, std::int64_t n);
  void finish_delayed();
};

}  // namespace orrery
