#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "models/planner/step_part.h"

namespace orrery {

// Units whose weights or gradients lie on the host or on disks, and their way to the device and back.
class HostUnits : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { staged_.clear(); }
  void begin_step() override { norm_begun_ = false; }
  void reduce() override;

  // Reads this rank's part of a unit's weights from the disks to the host, unless it is on its way already.
  void fetch(std::uint32_t unit, std::uint32_t state, Phase phase);
  // Uploads this rank's part of a unit's weights to the device as it lies on the host: FSDP casts it on the device
  // (torch.distributed.fsdp, FlatParamHandle.pre_unshard() with CPUOffload).
  void upload(std::uint32_t unit, std::uint32_t state, Phase phase, const std::vector<TaskId>& after);
  // Whether a unit needs no gather: no other rank holds a part of it, and the host has it in the width that is read.
  bool copied_alone(std::uint32_t unit) const;
  // Uploads the gradients' sum over the micro-batches so far; the next gradients are added to it on the device
  // (DeepSpeed: async_accumulate_grad_in_cpu_via_gpu).
  void upload_gradients(std::uint32_t unit);
  // Offloads a unit's gradients from the device, where they were reduced, behind task `after`, which reads them there.
  void offload_gradients(std::uint32_t unit, TaskId after);
  // Finishes a unit's gradients, when all micro-batches are in them. lane: the lane of the unit's reduction. A word
  // table that another stage holds too waits for the end of the step: the stages come to it at other times.
  void finish(const Chunk& chunk, std::uint32_t unit, LaneKind lane);

 private:
  TaskId norm_of_unit(std::uint32_t unit, LaneKind lane);
  void sum_unit_over_model(const Chunk& chunk, std::uint32_t unit);

  std::set<std::uint32_t> staged_;   // unit frames on their way from disks
  std::uint32_t late_unit_ = kNone;  // unit whose gradients wait for the other end of the pipeline
  bool norm_begun_ = false;          // whether the step's norm already has a unit's squares
};

}  // namespace orrery
