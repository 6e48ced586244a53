#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "models/cost/profile.h"
#include "models/spec/spec.h"
#include "sim/generate/pass_limits.h"
#include "sim/print/table.h"
#include "sim/print/text.h"
#include "sim/report/report.h"

namespace orrery {

// One forward pass of generation. tokens: the tokens that the pass adds to each sequence; cached: those whose keys and
// values are in the cache before it; period_s: seconds from one pass to the next in a steady pipeline, equal to the
// report's step time without pipeline stages; report: the simulated step.
struct GeneratedPass {
  std::int64_t tokens = 0, cached = 0;
  double period_s = 0;
  Report report;
  PassLimits limits = {};
};

// Bytes of GPU memory that the rank with the greatest need takes. cache: keys and values of all its sequences;
// cache_a_sequence: those of one sequence; working: activations, buffers, the CUDA context, NCCL.
struct GeneratedMemory {
  Bytes capacity = 0, allowed = 0, weights = 0, cache = 0, cache_a_sequence = 0, working = 0;

  Bytes sum() const { return weights + cache + working; }
  bool fits() const { return sum() <= allowed; }
};

// The prediction for a spec that generates text (workload: generate), or the measurement of ranks that executed it.
struct GenerationReport {
  std::string source = "simulated";
  std::vector<GeneratedPass> prefill;  // the prefill passes (over a prompt), in order
  // decode passes (one token per sequence) at three lengths of the context: the first, the middle and the last
  std::vector<GeneratedPass> decode;
  GeneratedMemory memory;
  double first_token_s = 0;        // seconds of all passes over the prompts, the time to first token (TTFT)
  double token_s = 0;              // mean time per output token (TPOT) after the first
  double total_s = 0;              // seconds from the begin of the prompts to the last token
  double tokens_per_s = 0;         // generated tokens of all sequences a second, prefill included
  double bandwidth_share = 0;      // share of the memory bandwidth that reading weights and cache takes in decode (MBU)
  std::int64_t largest_batch = 0;  // sequences that fit in memory together, over all data ranks
};

// Predicts a spec with workload: generate. Decode passes are simulated at three lengths of the context, and the time of
// all passes is their integral by Simpson's rule, which is accurate because times of kernels are nearly linear in that
// length. Throws Stopped soon after `stop` is set.
GenerationReport predict_generation(const Spec& spec, Profile profile, const std::atomic<bool>* stop = nullptr);

// Returns the seconds from one decode pass to the next of a spec that generates text, with so many tokens of each
// sequence in the cache.
double decode_period_s(const Spec& spec, Profile profile, std::int64_t cached);

// Returns the bytes of the weights, or (if `cache`) of the cache of keys and values, of one class of ranks of a pass's
// plan or of several passes' plan.
Bytes generation_state_bytes(const Plan& plan, std::size_t slot, bool cache);
// Sets the figures of a generation that follow from its passes, its memory and the time of the prompts.
void add_generation_figures(const Spec& spec, GenerationReport& report);
// The line on what one token and the prompts wait for: "prefill: products 70 %, links 30 %; decode: weights 58 %, ...".
std::string limit_text(const GenerationReport& report);

// The prediction as JSON of schema orrery.generation/1 (to_json), and as text to read (generation_text).
std::string to_json(const Spec& spec, const GenerationReport& report);
std::string generation_text(const Spec& spec, const GenerationReport& report, const Style& style);
// A table of the passes, with what each pass spends its time on; kinds of time below 1 % are left out.
Table passes_table(const GenerationReport& report);

}  // namespace orrery
