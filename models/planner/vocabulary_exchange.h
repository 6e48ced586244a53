#pragma once

#include "models/planner/step_part.h"

namespace orrery {

// Exchanges of a vocabulary that all stages share. Sums of token embeddings, hidden states and the gradients of both
// have blocks of their own; a loss's sums are in the block of its logits.
class VocabularyExchange : public StepPart {
 public:
  using StepPart::StepPart;

  bool issue(const StageTransfer& transfer) override;
};

}  // namespace orrery
