#pragma once

#include "models/plan.h"
#include "models/spec.h"

namespace orrery {

// Floating-point operations of one step's forward and backward over the global batch, the way papers count them: every
// matrix product once forward and twice backward, attention over the full square of the sequence, nothing else. For a
// GPT with f = 4h: 72 B L s h^2 (1 + s/(6h) + V/(12 L h)) (Narayanan et al. 2021).
double model_flops(const Spec& spec);

// What checkpointing computes again, over all ranks; attention over the full square, flash attention's own not counted.
double recomputed_flops(const Plan& plan);

}  // namespace orrery
