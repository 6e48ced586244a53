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

// Settings of a training run that a plan does not contain.
struct Training {
  kernels::UpdateRule rule;
  double clip = 0;
  std::uint64_t seed = 0;
};

// The experts that a token chose, the largest score first; -1: dropped. Samples are counted over the whole run.
struct RoutedToken {
  std::int64_t step = 0, layer = 0, sample = 0, position = 0;
  std::span<const std::int32_t> experts;
};

// The loss of one step: the sum over this rank's tokens, and the number of these tokens.
struct StepLoss {
  double sum = 0;
  std::int64_t tokens = 0;
};

// Data that kernels read and write beside their operands. Only the compute lane touches the losses.
struct RunState {
  const Rank& rank;
  const Text& text;
  Training training;
  std::int64_t round = 0;        // number of the current execution of the plan, from 0
  std::vector<StepLoss> losses;  // by step of the plan
  kernels::RotaryTable rotary;
  bool sets_right = false;  // the updates redo those of the round before: undone, and made with the norm of all stages
  std::function<void(const RoutedToken&)> on_routing = {};  // may be empty; called by the compute lane
};

RunState run_state(const Rank& rank, const Text& text, const Training& training);

// Constants that published configurations share and that a spec has no key for.
inline constexpr double kRotaryTheta = 10000;  // Su et al. 2021; Llama 2
inline constexpr float kNormEpsilon = 1e-5F;   // Llama 2, GPT-2 (layer_norm_epsilon)
// Weight of the mean loss of further predictions, relative to the next token's loss (DeepSeek-V3, 2412.19437, section
// 4.2: 0.3 at first).
inline constexpr double kPredictionWeight = 0.3;

}  // namespace orrery
