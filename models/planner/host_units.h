#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class that copies offloaded weights and gradients between the device, the host and disks, unit by unit.
// A unit is the weights of one block, or of several, that are gathered together (units.h).
class HostUnits : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { staged_.clear(); }
  void begin_step() override { norm_begun_ = false; }
  void reduce() override;

  // Reads this rank's shard of a unit's weights from the disks to the host, unless that read has been issued already.
  // `state`: id of the frame (instance of buffers) with the parameters and optimizer states of the unit's chunk of
  // layers.
  void fetch(std::uint32_t unit, std::uint32_t state, Phase phase);
  // Uploads this rank's shard of a unit's weights to the device in the data type in which the host stores them; FSDP
  // casts the shard on the device (torch.distributed.fsdp, FlatParamHandle.pre_unshard() with CPUOffload).
  void upload(std::uint32_t unit, std::uint32_t state, Phase phase, const std::vector<TaskId>& after);
  // Uploads this rank's shard of a unit's frozen weights. Returns whether that is the whole unit.
  bool upload_frozen(std::uint32_t unit, Phase phase, const std::vector<TaskId>& after);
  // Returns whether a unit needs no all-gather. This is so if no other rank holds a part of the unit and the host
  // stores it in the data type that ops read.
  bool copied_alone(std::uint32_t unit) const;
  // Uploads the sum of a unit's gradients over the micro-batches so far; the next gradients are added to it on the
  // device (DeepSpeed: async_accumulate_grad_in_cpu_via_gpu).
  void upload_gradients(std::uint32_t unit);
  // Offloads a unit's reduced gradients from the device after task `after`, which still reads the device's buffer.
  void offload_gradients(std::uint32_t unit, TaskId after);
  // Computes the norm of a unit's gradients and offloads them, when the gradients of all micro-batches are added. lane:
  // the lane of the unit's reduction. The unit of an embedding table that another stage holds too is finished at the
  // end of the step instead, because the two stages complete its gradient at different times.
  void finish(const Chunk& chunk, std::uint32_t unit, LaneKind lane);

 private:
  TaskId norm_of_unit(std::uint32_t unit, LaneKind lane);
  void sum_unit_over_model(const Chunk& chunk, std::uint32_t unit);

  // ids of the frames (instances of buffers) of the units whose read from disks was issued
  std::set<std::uint32_t> staged_;
  // id of the frame (buffers) of the unit with the embedding table, whose gradients must be summed over the first and
  // the last stage
  std::uint32_t late_unit_ = kNone;
  bool norm_begun_ = false;  // whether a unit was already added to this step's gradient norm
};

}  // namespace orrery
