#pragma once

#include <string>
#include <vector>

#include "models/generation/generation_plan.h"
#include "sim/predict/predict.h"

namespace orrery {

// The passes of a generation that timelines show: all over the prompts, and as many of one token as make at most
// kMostShownTasks tasks, but at least two.
inline constexpr std::int64_t kMostShownTasks = 400'000;
std::vector<GenerationPass> shown_passes(const Spec& spec);
// The remark that a timeline holds only a part of the passes; "" if it holds all.
std::string cut_remark(const Spec& spec, const std::vector<GenerationPass>& shown);
// The names of passes: "prefill", or "prefill 0 to 511" if a prompt is computed in chunks; "decode 1", "decode 2", ...
std::vector<std::string> names_of(const Spec& spec, const std::vector<GenerationPass>& passes);

// Returns, for each class of ranks of a plan of these passes, the bytes of keys and values in use on a rank during
// each.
std::vector<std::vector<Bytes>> cache_use(const Spec& spec, const Plan& plan,
                                          const std::vector<GenerationPass>& passes);

// Predicts several passes in one plan, as ranks execute them, with the host's work before each (software.step_us) as an
// op of its own: the trace begins with the first pass, and buffers that
// outlive a pass are there once. The report's rates, MFU among them, are not set, as they are those of a training step.
Prediction predict_passes(const Spec& spec, Profile profile, const std::vector<GenerationPass>& passes,
                          const std::atomic<bool>* stop = nullptr);

}  // namespace orrery
