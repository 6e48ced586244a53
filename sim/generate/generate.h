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
// report's step time and the host's time between passes (software.step_us) without pipeline stages; report: the
// simulated step; limits: shares of the period; reads: bytes read from memory.
struct GeneratedPass {
  std::int64_t tokens = 0, cached = 0;
  double period_s = 0;
  Report report;
  PassLimits limits = {};
  PassReads reads = {};
};

// The most sequences of a batch that is looked for.
inline constexpr std::int64_t kMostSequences = 1'000'000;

// Bytes of GPU memory that the rank with the greatest need takes. cache: keys and values of all its sequences; states:
// the states of recurrences; cache_a_sequence, states_a_sequence: those of one sequence; working: activations, buffers,
// the CUDA context, NCCL.
struct GeneratedMemory {
  Bytes capacity = 0, allowed = 0, weights = 0, cache = 0, cache_a_sequence = 0, states = 0, states_a_sequence = 0;
  Bytes working = 0;

  Bytes sum() const { return weights + cache + states + working; }
  Bytes a_sequence() const { return cache_a_sequence + states_a_sequence; }
  bool fits() const { return sum() <= allowed; }
  // Returns the sequences of a rank whose keys and values have room in `most` bytes beside weights and this working
  // memory.
  std::int64_t sequences_within(Bytes most) const;
};

// The prediction for a spec that generates text (workload: generate), or the measurement of ranks that executed it.
struct GenerationReport {
  std::string source = "simulated";
  std::vector<GeneratedPass> prefill;  // the prefill passes (over a prompt), in order
  // decode passes (one token per sequence) at three lengths of the context: the first, the middle and the last
  // (or those that are checked, with speculative decoding)
  std::vector<GeneratedPass> decode;
  GeneratedMemory memory;
  double first_token_s = 0;  // seconds of all passes over the prompts, the time to first token (TTFT)
  double token_s = 0;        // mean time per output token (TPOT) after the first
  double total_s = 0;        // seconds from the begin of the prompts to the last token
  double tokens_per_s = 0;   // generated tokens of all sequences a second, prefill included
  // Model FLOPs of all passes over the prompts, over what the GPUs could do until the first token; and the same of the
  // passes for further tokens. 0: the peak is not known.
  double prompts_mfu = 0, tokens_mfu = 0;
  double bandwidth_share = 0;      // share of the memory bandwidth that PassReads take in decode (MBU); 0: not known
  std::int64_t largest_batch = 0;  // sequences that fit in memory together, over all data ranks; 0 if executed
};

// Predicts a spec with workload: generate. Decode passes are simulated at three lengths of the context, and the time of
// all passes is their integral by Simpson's rule, which is accurate because times of kernels are nearly linear in that
// length. Throws Stopped soon after `stop` is set.
GenerationReport predict_generation(const Spec& spec, Profile profile, const std::atomic<bool>* stop = nullptr);
// The same without the largest batch, which takes several more simulations (largest_batch.h).
GenerationReport predict_batch(const Spec& spec, Profile profile, const std::atomic<bool>* stop = nullptr);
// The memory alone, from the first pass over the prompts, which needs the most working memory.
GeneratedMemory generation_memory(const Spec& spec, Profile profile, const std::atomic<bool>* stop = nullptr);

// The mean of a figure over all passes of one token, from the three lengths of the context (Simpson's rule).
template <class Figure>
double mean_of_decode(const GenerationReport& r, const Figure& of) {
  return (of(r.decode[0]) + 4 * of(r.decode[1]) + of(r.decode[2])) / 6;
}

// Returns the seconds from one decode pass to the next of a spec that generates text, with so many tokens of each
// sequence in the cache; with speculative decoding a pass proposes and checks tokens.
double decode_period_s(const Spec& spec, Profile profile, std::int64_t cached);
// Seconds of one pass over all prompts of a spec, by the GPU and by the host alone: for its kernels if they were
// launched at once, and for launching them; both with what the host takes between passes. experts_s: those of the GPU
// in products of experts, which compute the tokens of all data ranks.
struct PromptTime {
  double device_s = 0, launch_s = 0, experts_s = 0;
};
PromptTime prompt_time(const Spec& spec, Profile profile);

// Returns the bytes of weights, keys and values and recurrent states of one class of ranks of a pass's plan, or of
// several passes' plan, and of one sequence.
GeneratedMemory kept_for_generation(const Spec& spec, const Plan& plan, std::size_t slot);
// Sets the figures of a generation that follow from its passes, its memory and the time of the prompts.
void add_generation_figures(const Spec& spec, GenerationReport& report);
// The line on what one token and the prompts wait for: "prefill: products 70 %, links 30 %; decode: weights 58 %, ...".
std::string limit_text(const GenerationReport& report);
// Returns whether a generated text fits, and by how much: "fits: 43.51 GiB to spare of 71.68 GiB, 90 % of 79.65 GiB".
std::string fit_text(const GeneratedMemory& memory);

// The prediction as JSON of schema orrery.generation/1 (to_json), and as text to read (generation_text).
std::string to_json(const Spec& spec, const GenerationReport& report);
std::string generation_text(const Spec& spec, const GenerationReport& report, const Style& style);
// A table of the passes, with what each pass spends its time on; kinds of time below 1 % are left out.
Table passes_table(const GenerationReport& report);

}  // namespace orrery
