#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "exec/host/generated.h"
#include "exec/host/text.h"
#include "exec/memory/rank.h"
#include "kernels/cpu/rotary.h"
#include "kernels/cpu/update.h"

namespace orrery {

// Settings of a training run that are not part of a plan.
struct Training {
  kernels::UpdateRule rule;
  double clip = 0;
  std::uint64_t seed = 0;
  // fp16: the loss scale of the first step, and the number of updates without an infinite gradient after which the loss
  // scale doubles; the defaults are those of PyTorch's GradScaler.
  double loss_scale = 65536;
  std::int64_t loss_scale_interval = 2000;
};

// The course of the loss scale in fp16 training: the updates made since the last infinite gradient, and the number of
// updates that were skipped.
struct LossScaling {
  std::int64_t good_updates = 0, skipped = 0;
};

// The experts that a router chose for a token, the best first; -1 stands for a dropped choice. sample: number of the
// token's sample in the complete run. second: the router is one of the frozen model beside the one that trains.
struct RoutedToken {
  std::int64_t step = 0, layer = 0, sample = 0, position = 0;
  bool second = false;
  std::span<const std::int32_t> experts;
};

// The loss of one step: the sum over this rank's tokens, and the number of these tokens.
struct StepLoss {
  double sum = 0;
  std::int64_t tokens = 0;
};

// The state of a run that the kernels of one rank read and write besides their operands. Only tasks of the compute lane
// (the queue of compute tasks) write the losses.
struct RunState {
  const Rank& rank;
  const Text& text;
  Training training;
  std::int64_t round = 0;        // number of times that the plan was executed before
  std::vector<StepLoss> losses;  // for each step of the plan, its loss
  kernels::RotaryTable rotary;
  kernels::RotaryTable second_rotary;  // that of the frozen model beside the one that trains
  // Whether optimizer updates now undo the updates of the previous step and make them again, with the gradient norm of
  // all pipeline stages (post-update validation).
  bool redoes_update = false;
  LossScaling scaling = {};
  // A function that is called on the compute lane for each token that a router has assigned to experts; may be empty.
  std::function<void(const RoutedToken&)> on_routing = {};
  std::shared_ptr<GeneratedState> generated = {};  // set where the ranks generate text
};

RunState run_state(const Rank& rank, const Text& text, const Training& training);

// Constants for which specs have no key, because published configurations agree on them.
inline constexpr double kRotaryTheta = 10000;  // base of the rotary frequencies (Su et al. 2021; Llama 2)
inline constexpr float kNormEpsilon = 1e-5F;   // epsilon of norms, as in Llama 2 and GPT-2 (layer_norm_epsilon)
// Weight of the mean loss of multi-token prediction, relative to the weight 1 of the next token's loss (DeepSeek-V3,
// arXiv 2412.19437, section 4.2: 0.3 for the first 10 T tokens; a run here is shorter).
inline constexpr double kPredictionWeight = 0.3;

}  // namespace orrery
