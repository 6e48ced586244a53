#include "sim/generate/served_options.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "models/load/aliases.h"
#include "sim/generate/served_spec.h"

namespace orrery {
namespace {

// How a stack forms its passes, by its defaults. overlaps: whether it launches a pass while the one before runs.
struct ServingHabit {
  std::string_view stack;
  std::int64_t sequences;
  bool mixes, reserves, overlaps;
  double of_free = 0;
};
// vLLM: max_num_seqs and max_num_batched_tokens of its server on GPUs of 70 GiB and more (vllm/engine/arg_utils.py),
// preemption by recomputation (vllm/v1/core/sched/scheduler.py), asynchronous scheduling by default from 0.14 on.
// TensorRT-LLM: max_batch_size, max_num_tokens and CapacitySchedulerPolicy.GUARANTEED_NO_EVICT,
// KvCacheConfig.free_gpu_memory_fraction (tensorrt_llm/llmapi/llm_args.py); it has an overlap scheduler too, but first
// tokens do not come a pass later for it: its rows agree better without. SGLang: chunked_prefill_size
// (python/sglang/srt/server_args.py); its scheduler runs new prompts before answers, unless enable_mixed_chunk is set,
// overlaps, and retracts requests where the cache is full; how many run at once follows from the cache. All take 8,192
// tokens in a pass.
constexpr ServingHabit kServingHabits[] = {{"vllm", 1024, true, false, true},
                                           {"vllm-synchronous", 1024, true, false, false},
                                           {"tensorrt-llm", 2048, true, true, false, 0.9},
                                           {"tensorrt-llm-engines", 2048, true, true, false, 0.9},
                                           {"sglang", 1 << 30, false, false, true}};

// Options of InferenceX's servers that its rows do not state, by stack, model and GPU, and by lengths of prompts and
// answers where they are not 0; "": any GPU. They are from memory and from the rows themselves, not read in its
// scripts:
// - SGLang has --scheduler-recv-interval 10, or 30 from 16 clients on: what the first token takes beyond a pass doubles
//   between 8 and 16 clients, for these models and GPUs alone.
// - TensorRT-LLM has stream_interval 20: the first token comes 20 further tokens late in all 24 such rows, from 4 to
// 128
//   clients, and in none of the other lengths.
struct LaunchOptions {
  std::string_view stack, model, gpu;
  std::int64_t input, output, poll_passes, poll_passes_of_many, stream_passes;
};
constexpr LaunchOptions kInferenceX[] = {{"sglang", "deepseek-v3", "b200", 0, 0, 10, 30, 1},
                                         {"sglang", "deepseek-v3", "b300", 0, 0, 10, 30, 1},
                                         {"sglang", "qwen3.5-397b-a17b", "b200", 0, 0, 10, 30, 1},
                                         {"sglang", "qwen3.5-397b-a17b", "b300", 0, 0, 10, 30, 1},
                                         {"tensorrt-llm", "llama-3.1-70b", "", 1024, 1024, 1, 1, 20}};

// How likely DeepSeek-R1 agrees to its module's tokens: to the first 85 to 90 % of the time (DeepSeek-V3, arXiv
// 2412.19437, section 5.4.3); where the module goes on from its own tokens 7 proposals yield 3.20 tokens on average
// (LK losses: the original module, model card of nebius/MTP-DeepSeek-V3-0324), as 70 % each would.
constexpr double kOneDraftAccepted = 0.87, kChainAccepted = 0.7;

// Releases of TensorRT-LLM whose rows of DeepSeek-R1 are taken to decode speculatively, with the model's module: an
// inference from their times per token, 0.5 to 0.7 of those of the release before, and from their later first tokens.
// In 1.1.0rc2.post2 it is those whose ranks hold different experts.
bool speculates(const ServedRow& row) {
  const auto is_of = [&](std::string_view release) { return row.framework.find(release) != std::string::npos; };
  return is_of("1.2.0rc6.post3") || (is_of("1.1.0rc2.post2") && row.expert > 1);
}

// Options that TensorRT-LLM's own collection of configurations has for a model, its lengths and its number of clients
// (NVIDIA/TensorRT-LLM, examples/configs/database, 2025 and 2026), which has the loads of these rows:
// - DeepSeek-R1: max_batch_size is the number of clients of a data rank, max_num_tokens the tokens of all answers, one
//   prompt and 64 more, rounded up to 64, so that a pass takes one prompt; with attention_dp, enable_balance and
//   timeout_iters: 60; where it has speculative_config, MTP with three drafts, or one with attention_dp.
//   stream_interval is 10, but only in the rows of 1.1.0rc2.post2 the first token comes ten passes late (later releases
//   send it at once: py_executor.py, py_decoding_iter == 1).
// - gpt-oss: max_num_tokens: 20000.
// enable_chunked_prefill is off by default: a prompt is not cut.
void take_database(const ServedRow& row, ServedOptions& options) {
  const std::string model = canonical_model(row.model);
  options.cuts_prompts = false;
  if (model == "gpt-oss-120b") options.pass_tokens = 20'000;
  if (model != "deepseek-v3") return;
  constexpr std::int64_t kSpare = 64, kTimeoutPasses = 60, kStreamedPasses = 10;
  const bool apart = row.attention_data > 1;
  if (speculates(row)) {
    options.drafts = apart ? 1 : 3;
    options.acceptance = apart ? kOneDraftAccepted : kChainAccepted;
  }
  if (row.concurrency > 0) options.sequences = ceil_div(row.concurrency, row.attention_data);
  const std::int64_t answers = options.sequences * (1 + options.drafts);
  options.pass_tokens = ceil_div(answers + row.input + kSpare, kSpare) * kSpare;
  if (apart) options.balance_passes = kTimeoutPasses;
  if (row.framework.find("1.1.0rc2") != std::string::npos) options.stream_passes = kStreamedPasses;
}

// InferenceX's clients draw lengths from 80 % to 100 % of the stated ones (--random-range-ratio 0.8): of equal and of
// drawn lengths its rows agree better with drawn ones, those of other sources with equal ones.
void take_inferencex(const ServedRow& row, ServedOptions& options) {
  constexpr std::int64_t kMany = 16;
  options.shortest = 0.8;
  const std::string stack = stack_of(row), model = canonical_model(row.model);
  for (const LaunchOptions& o : kInferenceX) {
    const bool lengths = o.input == 0 || (o.input == row.input && o.output == row.output);
    if (o.stack != stack || o.model != model || (!o.gpu.empty() && o.gpu != row.gpu) || !lengths) continue;
    options.poll_passes = row.concurrency < kMany ? o.poll_passes : o.poll_passes_of_many;
    options.stream_passes = o.stream_passes;
  }
  if (stack == "tensorrt-llm") take_database(row, options);
}

}  // namespace

ServedOptions served_options(const ServedRow& row) {
  const auto& habit = *std::ranges::find(kServingHabits, stack_of(row), &ServingHabit::stack);
  ServedOptions options = {.sequences = habit.sequences,
                           .mixes = habit.mixes,
                           .reserves = habit.reserves,
                           .overlaps = habit.overlaps,
                           .of_free = habit.of_free};
  if (row.source.find("source_file=") != std::string::npos) take_inferencex(row, options);
  return options;
}

}  // namespace orrery
