#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "exec/host/text.h"
#include "exec/memory/rank.h"
#include "kernels/cpu/rotary.h"
#include "kernels/cpu/update.h"

namespace orrery {

// What a run of several steps does beyond its plan.
struct Training {
  kernels::UpdateRule rule;
  double clip = 0;
  std::uint64_t seed = 0;
};

// Experts that a token chose, the largest score first; -1: dropped. Sample counts over the whole run.
struct RoutedToken {
  std::int64_t step = 0, layer = 0, sample = 0, position = 0;
  std::span<const std::int32_t> experts;
};

// Of one step: the sum over this rank's tokens, and how many.
struct StepLoss {
  double sum = 0;
  std::int64_t tokens = 0;
};

// What kernels read and write beside their operands. Losses are touched by the compute lane alone.
struct RunState {
  const Rank& rank;
  const Text& text;
  Training training;
  std::int64_t round = 0;        // of the plan, from 0
  std::vector<StepLoss> losses;  // by step of the plan
  kernels::RotaryTable rotary;
  bool sets_right = false;  // updates are those of the round before, taken back and made with the norm of all stages
  std::function<void(const RoutedToken&)> on_routing = {};  // may be empty; called by the compute lane
};

RunState run_state(const Rank& rank, const Text& text, const Training& training);

// The constants that published configurations share and a spec has no key for.
inline constexpr double kRotaryTheta = 10000;  // Su et al. 2021; Llama 2
inline constexpr float kNormEpsilon = 1e-5F;   // Llama 2, GPT-2 (layer_norm_epsilon)
// Of the mean loss of further predictions, beside the next token's (DeepSeek-V3, 2412.19437, section 4.2: 0.3 at
// first).
inline constexpr double kPredictionWeight = 0.3;

}  // namespace orrery
