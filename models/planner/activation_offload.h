#pragma once

#include <cstdint>
#include <set>

#include "models/planner/step_part.h"

namespace orrery {

// Activations that lie on the host between forward and backward. The device's copy is given up when the block after
// them has been issued, or before anything runs back (Transformer Engine's cpu_offload waits as late:
// synchronize_on_group_commit_forward).
class ActivationOffload : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { leaving_ = kNone; }
  void before_block(const Pass& pass) override;
  void after_block(const Pass& pass) override;

 private:
  void release();

  std::uint32_t leaving_ = kNone;  // a frame whose activations are on their way to the host
};

// Uploads activations from the host while the block before runs back: those of a block and of the next.
class ActivationUploads : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { fetched_.clear(); }
  void before_block(const Pass& pass) override;

 private:
  std::set<std::uint32_t> fetched_;  // frames whose activations are on their way back from the host
};

}  // namespace orrery
