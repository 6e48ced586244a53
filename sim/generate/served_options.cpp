#include "sim/generate/served_options.h"

#include <regex>
#include <string>

#include "models/load/aliases.h"
#include "sim/generate/served_spec.h"

namespace orrery {

namespace {

// vLLM schedules asynchronously by default from 0.14 on, SGLang (its overlap schedule) in all rows. TensorRT-LLM has an
// overlap scheduler too, but first tokens do not come a pass later for it: its rows agree better without.
bool overlaps(const ServedRow& row) {
  constexpr int kFirstAsynchronous = 14;
  std::smatch version;
  static const std::regex kVersion("vllm 0\\.([0-9]{1,3})");
  const bool old = std::regex_search(row.framework, version, kVersion) && std::stoi(version[1]) < kFirstAsynchronous;
  return !old && !stack_of(row).starts_with("tensorrt-llm");
}

}  // namespace

// InferenceX starts its servers and clients with options that its rows do not state. They are from memory and from the
// rows themselves, not read in its scripts:
// - Its clients draw lengths from 80 % to 100 % of the stated ones (--random-range-ratio 0.8). Of equal and of drawn
//   lengths its rows agree better with drawn ones, those of other sources with equal ones.
// - On Blackwell it starts SGLang for DeepSeek-R1 and Qwen3.5 with --scheduler-recv-interval 10, or 30 from 16 clients
//   on: what the first token takes beyond a pass doubles between 8 and 16 clients, on these GPUs alone.
// - It starts TensorRT-LLM for Llama 3.1 70B with stream_interval 20 where prompts and answers have 1,024 tokens: the
//   first token comes 20 further tokens late in all 24 such rows, from 4 to 128 clients, and in none of the others.
ServedOptions served_options(const ServedRow& row) {
  ServedOptions options;
  options.overlaps = overlaps(row);
  if (row.source.find("source_file=") == std::string::npos) return options;
  options.shortest = 0.8;
  const std::string stack = stack_of(row), model = canonical_model(row.model);
  const bool blackwell = row.gpu == "b200" || row.gpu == "b300";
  if (stack == "sglang" && blackwell && (model.starts_with("deepseek-") || model.starts_with("qwen3.5"))) {
    constexpr std::int64_t kFew = 10, kMany = 30, kManyClients = 16;
    options.poll_passes = row.concurrency < kManyClients ? kFew : kMany;
  }
  constexpr std::int64_t kShort = 1024, kPiece = 20;
  if (stack == "tensorrt-llm" && model == "llama-3.1-70b" && row.input == kShort && row.output == kShort)
    options.stream_tokens = kPiece;
  return options;
}

}  // namespace orrery
