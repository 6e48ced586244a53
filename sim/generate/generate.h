#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/print/table.h"
#include "sim/print/text.h"
#include "sim/report/report.h"

namespace orrery {

// One pass of generation: the tokens that it adds to each sequence, those that the cache holds before it, and its
// simulated step. period_s: seconds from one such pass to the next in a steady pipeline; equal to the report's step
// time without pipeline stages.
struct GeneratedPass {
  std::int64_t tokens = 0, cached = 0;
  double period_s = 0;
  Report report;
};

// Bytes of a GPU's memory, of the rank that needs the most: weights; the cache of all its sequences; `cache_a_sequence`
// of one of them; working memory (activations, buffers, the CUDA context, NCCL).
struct GeneratedMemory {
  Bytes capacity = 0, allowed = 0, weights = 0, cache = 0, cache_a_sequence = 0, working = 0;

  Bytes sum() const { return weights + cache + working; }
  bool fits() const { return sum() <= allowed; }
};

// The prediction of a generation (workload: generate).
struct GenerationReport {
  std::vector<GeneratedPass> prefill;  // the passes over a prompt, in order
  std::vector<GeneratedPass> decode;  // passes of one token at the first, the middle and the last length of the context
  GeneratedMemory memory;
  double first_token_s = 0;    // time to first token (TTFT): all passes over the prompts
  double token_s = 0;          // mean time per output token (TPOT) after the first
  double total_s = 0;          // seconds from the begin of the prompts to the last token
  double tokens_per_s = 0;     // generated tokens of all sequences a second, prefill included
  double bandwidth_share = 0;  // of the memory bandwidth, the part that reading weights and cache needs in decode (MBU)
  std::int64_t largest_batch = 0;  // sequences that fit in memory together, over all data ranks
};

// Predicts a spec with workload: generate. Decode passes are simulated at three lengths of the context and integrated
// by Simpson's rule: times of kernels are nearly linear in it. Throws Stopped soon after `stop` is set.
GenerationReport predict_generation(const Spec& spec, Profile profile, const std::atomic<bool>* stop = nullptr);

// JSON of schema orrery.generation/1, and a table for people.
std::string to_json(const Spec& spec, const GenerationReport& report);
std::string generation_text(const Spec& spec, const GenerationReport& report, const Style& style);
// The passes, with the shares of their times of each kind that takes a hundredth or more.
Table passes_table(const GenerationReport& report);

}  // namespace orrery
