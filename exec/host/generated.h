#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "exec/host/key_value_cache.h"
#include "exec/host/recurrent_states.h"
#include "models/generation/generation_plan.h"

namespace orrery {

// Copies the tokens [first, first + count) of the prompt of a sequence, by its number in the complete run.
using PromptReader =
    std::function<void(std::int64_t sequence, std::int64_t first, std::int64_t count, std::int64_t* to)>;

// The logits from which a token of a sequence was chosen, as far as they are on one rank. position: number of tokens
// that were generated before.
struct KeptLogits {
  std::int64_t sequence = 0, position = 0;
  std::vector<float> values;
};
// Logits are kept of so many sequences of a rank, and of so many tokens of each.
inline constexpr std::int64_t kKeptSequences = 16, kKeptTokens = 64;

// The state of a generation on one rank: its passes, where its caches hold which tokens, where the states of its
// recurrences lie, and the tokens that were chosen so far for each sequence of the rank, which on ranks of the first
// pipeline stage are those that the last stage sent.
struct GeneratedState {
  GeneratedState(const Rank& rank, PromptReader reader)
      : passes(generation_passes(*rank.spec.generation)),
        cache(rank),
        recurrent(rank),
        tokens(static_cast<std::size_t>(rank.spec.generation->batch / rank.spec.strategy.data)),
        chosen(tokens.size()),
        prompt(std::move(reader)) {}

  void clear() {
    cache.clear();
    for (auto* list : {&tokens, &chosen}) {
      for (std::vector<std::int64_t>& sequence : *list) sequence.clear();
    }
    logits.clear();
  }

  std::vector<GenerationPass> passes;
  KeyValueCache cache;
  RecurrentStates recurrent;
  std::vector<std::vector<std::int64_t>> tokens;
  // The tokens that the model chose, on ranks that choose; `follows` has those with which the text goes on in their
  // place, and is empty if it goes on with them.
  std::vector<std::vector<std::int64_t>> chosen, follows;
  PromptReader prompt;
  bool keeps_logits = false;
  std::vector<KeptLogits> logits;  // by the sequence's number on the rank
};

// The tokens that were generated for one sequence, by its number in the complete run.
struct GeneratedSequence {
  std::int64_t number = 0;
  std::vector<std::int64_t> tokens;
};

}  // namespace orrery
