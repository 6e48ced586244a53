#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// The planner's class that issues the collectives among pipeline stages that share a vocabulary. The collectives for
// token embeddings (sum), hidden states (broadcast) and the gradients of both have blocks of their own; those for the
// loss (sums) are in the block of the logits.
class VocabularyExchange : public StepPart {
 public:
  using StepPart::StepPart;

  bool issue(const StageTransfer& transfer) override;
};

}  // namespace orrery
