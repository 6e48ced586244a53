#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// Casts of weights to fp8, with the transposed copy that backward reads, once a step before their first use
// (Transformer Engine: is_first_microbatch). Only weights that stay on the device between micro-batches have them.
class EightBitCasts : public StepPart {
 public:
  using StepPart::StepPart;

  void before_block(const Pass& pass) override;
};

}  // namespace orrery
