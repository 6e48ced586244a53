#pragma once

#include <cstdint>
#include <vector>

#include "models/plan/plan.h"
#include "models/spec/spec.h"

namespace orrery {

// One forward pass of text generation: the tokens that it adds to each sequence, and those that are in the cache
// before. A pass over the last tokens of the prompts, and every later pass, chooses the next token of each sequence.
struct GenerationPass {
  std::int64_t tokens = 0, cached = 0;

  bool chooses(const Generation& g) const { return cached + tokens >= g.input; }
  bool answers(const Generation& g) const { return cached >= g.input; }
};

// Returns all passes of a generation in order: those over the prompts, whole or in chunks, then one for each further
// token, or with speculative decoding for each number of tokens that a pass adds on average.
std::vector<GenerationPass> generation_passes(const Generation& g);

// Returns the spec of one pass, whose plan (make_plan) is that pass alone.
Spec spec_of_pass(const Spec& spec, const GenerationPass& pass);

// Name of the op that stands for the host's work before a pass.
inline constexpr const char* kPreparePass = "prepare pass";

// Makes the plan of several passes of a generation, one after the other. Weights and caches of all passes are the same
// buffers; micro-batch k m + j is micro-batch j of m of pass number k. With pipeline stages, the last stage sends the
// tokens that a pass chose to the first stage, where the next pass reads them, and passes follow each other without
// emptying the pipeline as far as tokens are there. prepares: on every rank, an op kPreparePass comes between the
// kernels of two passes, and before the first pass; its time is that of software.step_us, which is no op's when ranks
// execute the plan.
Plan make_generation_plan(const Spec& spec, const std::vector<GenerationPass>& passes, bool prepares = false);

// Makes the plan that ranks execute: that of a training step, or of a complete generation.
Plan make_executed_plan(const Spec& spec);

}  // namespace orrery
