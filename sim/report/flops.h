#pragma once

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// The (query, key) pairs that count as work of attention. masked: the pairs that the mask allows, s (s + 1) / 2 in a
// causal sequence of s tokens and fewer in a sliding window. full: all s x s pairs, as PaLM, Megatron and most papers
// count. Papers that do not say which pairs they count are taken to mean full.
enum class AttentionPairs : std::uint8_t { masked, full };

// Returns the floating-point operations of one step (forward and backward of the global batch) as papers count them:
// every matrix product once in forward and twice in backward, nothing else. A frozen second model has the products of
// forward alone. With AttentionPairs::full, for a GPT with L
// layers of hidden size h and feed-forward size 4h, a vocabulary of V and a batch of B sequences of s tokens, they are
// 72 B L s h^2 (1 + s/(6h) + V/(12 L h)) (Narayanan et al. 2021).
// For a spec that generates text they are those of the forward of one pass: of the tokens that it adds, their attention
// to the cache and to each other, and the logits of tokens after which one is chosen, so that chunks of a prompt add up
// to the whole prompt. Latent attention counts as before it is absorbed.
double model_flops(const Spec& spec, AttentionPairs pairs);

// Returns the floating-point operations that activation checkpointing runs again in a step, over all ranks. Flash
// attention's own recomputation does not count. For unfused attention, the share of masked pairs is the mean over the
// model's layers.
double recomputed_flops(const Plan& plan, const Spec& spec, AttentionPairs pairs);

}  // namespace orrery
