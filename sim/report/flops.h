#pragma once

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// Which pairs of a query and a key count as attention's work. masked: the pairs that the mask allows, s (s + 1) / 2 in
// a causal sequence of s tokens and fewer in a sliding window. full: all s x s pairs, as PaLM, Megatron and most papers
// count. Papers that do not say are taken to mean full.
enum class AttentionPairs : std::uint8_t { masked, full };

// Floating-point operations of one step's forward and backward over the global batch, the way papers count them: every
// matrix product once forward and twice backward, nothing else. Over all pairs, for a GPT with L layers of hidden size
// h and feed-forward size 4h, a vocabulary of V and a batch of B sequences of s tokens, they are 72 B L s h^2 (1 +
// s/(6h) + V/(12 L h)) (Narayanan et al. 2021).
double model_flops(const Spec& spec, AttentionPairs pairs);

// FLOPs that activation checkpointing runs again, over all ranks; flash attention's own recomputation is not counted.
// For unfused attention, the share of masked pairs is the mean over the model's layers.
double recomputed_flops(const Plan& plan, const Spec& spec, AttentionPairs pairs);

}  // namespace orrery
