#pragma once

#include <cstdint>
#include <set>

#include "models/planner/step_part.h"

namespace orrery {

// Offloads activations to the host between forward and backward. The device's copy of a block's activations is freed
// when the next block has been issued, or before any backward (Transformer Engine's cpu_offload waits as late:
// synchronize_on_group_commit_forward).
class ActivationOffload : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { leaving_ = kNone; }
  void before_block(const Pass& pass) override;
  void after_block(const Pass& pass) override;

 private:
  void release();

  std::uint32_t leaving_ = kNone;  // a frame whose activations are being copied to the host
};

// Uploads activations from the host one block ahead: as a block's backward begins, its own and the next block's.
class ActivationUploads : public StepPart {
 public:
  using StepPart::StepPart;

  void begin_slot() override { fetched_.clear(); }
  void before_block(const Pass& pass) override;

 private:
  std::set<std::uint32_t> fetched_;  // frames whose upload from the host has been issued
};

}  // namespace orrery
