#pragma once

#include <functional>

#include "sim/generate/generate.h"
#include "sim/generate/serving_load.h"

namespace orrery {

// Predicts seconds of passes over `batch` sequences on each data rank: over prompts of `input` tokens, and of one token
// of each sequence with `cached` tokens in the cache.
struct PredictPass {
  std::function<PromptTime(std::int64_t batch, std::int64_t input)> prompts;
  std::function<double(std::int64_t batch, std::int64_t cached)> decode;
};

// The times of a stack's passes under a load, from predictions of few batches: passes of answers at up to three numbers
// of sequences, linear between them and in the context; passes of prompts of one and of several prompts. Sequences and
// tokens are those of one data rank.
PassTimes pass_times(const PredictPass& predict, const ServingLoad& load);

}  // namespace orrery
