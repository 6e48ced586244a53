#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// The step part that issues the collectives over pipeline stages that share a vocabulary. Sums of token embeddings,
// broadcasts of hidden states and the gradients of both are in blocks of their own; the sums of the loss are in the
// block of the logits.
class VocabularyExchange : public StepPart {
 public:
  using StepPart::StepPart;

  bool issue(const StageTransfer& transfer) override;
};

}  // namespace orrery
