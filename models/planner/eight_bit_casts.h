#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class that casts weights to fp8, plain and transposed for backward, once a step before their first use
// (Transformer Engine: is_first_microbatch). Only weights that stay unsharded on the device between micro-batches are
// cast this way.
class EightBitCasts : public StepPart {
 public:
  using StepPart::StepPart;

  void before_block(const Pass& pass) override;
};

}  // namespace orrery
