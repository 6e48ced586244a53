#pragma once

#include <cstdint>
#include <string>

#include "sim/generate/served.h"

namespace orrery {

// How the server and the clients of a measured row form passes, as serving_load.h says: by the stack's defaults, and by
// options with which a source started them. Both are in models/data/serving.json, each with its source. There
// fits_one_prompt sets sequences and pass_tokens so that a pass takes the answers of all clients of a data rank and one
// prompt, rounded up to a multiple of so many tokens.
struct ServedOptions {
  std::int64_t sequences = 1, pass_tokens = 8192;
  bool mixes = true, reserves = true, overlaps = false;
  bool tunes = false;  // whether trtllm-bench sets sequences and pass_tokens (tune)
  // bytes that the sampler keeps for each word of the vocabulary and each of `sequences`
  std::int64_t sampler_bytes = 0;
  // share of what weights and working memory leave free that the cache gets; 0: what memory_fraction of the GPU leaves
  double of_free = 0;
  double shortest = 1;
  std::int64_t poll_passes = 1, stream_passes = 1, balance_passes = 0;
  bool cuts_prompts = true;
  // speculative decoding: tokens that are proposed for a pass, and how likely one is accepted
  std::int64_t drafts = 0;
  double acceptance = 0;
  bool tokenises = false;            // whether one process of the server turns prompts into tokens
  double tokenise_s = 0;             // which takes so long for each token of a prompt
  std::int64_t gpus_per_switch = 1;  // of the machine: GPUs that share a PCIe switch
  // lengths of prompts and answers in the stack's own benchmark, of rows that do not say theirs; 0: not known
  std::int64_t benchmark_input = 0, benchmark_output = 0;
};

// Returns the most tokens that a stack computes in one pass by default; 0 if it is not one that serves requests, or has
// no such limit.
std::int64_t pass_tokens_of(const std::string& stack);
// Returns the options of a row's stack, release, source, model and GPU. None is fitted but tokenise_s, though some of a
// source are told from its rows.
ServedOptions served_options(const ServedRow& row);

// Sets sequences and pass_tokens as trtllm-bench does when it builds an engine for a load (TensorRT-LLM 0.17,
// tensorrt_llm/bench/build/tuning.py): as many sequences as the cache has room for by its estimate, rounded up, and as
// many tokens a pass as keep them all in progress. requests: sequences of the row's lengths that have room in 95 % of
// the memory beside the weights.
void tune(const ServedRow& row, double requests, ServedOptions& options);

}  // namespace orrery
