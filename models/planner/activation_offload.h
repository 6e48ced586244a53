#pragma once

#include <cstdint>
#include <set>

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class that offloads activations to the host between forward and backward. A block's activations on the
// device are freed after the next block has been issued, or, if no next block comes, before any backward (as late as in
// Transformer Engine's cpu_offload: synchronize_on_group_commit_forward).
class ActivationOffload : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { leaving_ = kNone; }
  void before_block(const Pass& pass) override;
  void after_block(const Pass& pass) override;

 private:
  void release();

  std::uint32_t leaving_ = kNone;  // id of the frame (a block's buffers) whose activations are being copied to the host
};

// The planner's class that uploads activations from the host one block (such as a layer) ahead: before a block's
// backward, it issues the uploads of this block and of the block whose backward comes next.
class ActivationUploads : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { fetched_.clear(); }
  void before_block(const Pass& pass) override;

 private:
  std::set<std::uint32_t> fetched_;  // ids of the frames (a block's buffers) whose upload from the host was issued
};

}  // namespace orrery
