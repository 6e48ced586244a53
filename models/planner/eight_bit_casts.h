#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// Weights that stay are cast to fp8 once a step, before their first use, with the transposed copy that backward reads
// (Transformer Engine: is_first_microbatch).
class EightBitCasts : public StepPart {
 public:
  using StepPart::StepPart;

  void before_block(const Pass& pass) override;
};

}  // namespace orrery
