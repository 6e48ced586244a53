#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/spec/spec.h"
#include "sim/published/from_steps.h"
#include "sim/published/prior_fit.h"

namespace orrery {

// The stack of a spec that names none (models/load/software.cpp), and whether a spec names one.
inline constexpr const char* kAnyStack = "megatron-core";
bool names_stack(const Spec& spec);

// Returns a step's spec with another stack; what the spec says of the stack beside its name stays.
Spec with_stack(const StackStep& step, const std::string& stack);

// The natural logarithm of the predicted seconds of a step with another stack; nothing if it cannot be predicted so.
std::optional<double> ln_seconds_with(const StackStep& step, const std::string& stack);

// The stack that measured steps look like, and how probable it is among the known ones.
struct LikelyStack {
  std::string name;
  double probability = 1;
};

// Finds which stack with published steps those of an unknown one look like: the one whose constants, corrected by
// factors as the priors allow, make the measured times most likely. responses: of the steps with the stack where a spec
// names none, whose dependence on the factors is taken for every stack.
LikelyStack likely_stack(const std::vector<StackStep>& steps, const std::vector<StepResponse>& responses,
                         const StepPriors& priors = built_in_priors());

}  // namespace orrery
