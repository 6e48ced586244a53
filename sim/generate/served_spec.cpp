#include "sim/generate/served_spec.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <string_view>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/cost/expert_law.h"
#include "models/load/aliases.h"
#include "models/load/load_spec.h"
#include "sim/generate/served_options.h"

namespace orrery {
namespace {

// The formats of a row in the words of a spec: the precision of the matrix products, and keys of strategy.quantise; an
// empty precision if specs do not have the row's.
struct RowFormats {
  std::string precision, quantise;
};

// Whether a row's weights in 8 bits have a scale for each block of 128 x 128: as the row says of its products, or as
// the published weights of its model have (quantization_config.weight_block_size in their config.json); others have one
// for a matrix.
bool has_blocks(const ServedRow& row, const std::string& model) {
  constexpr std::string_view kNames[] = {"deepseek", "qwen3", "minimax", "glm", "kimi"};
  const bool published = std::ranges::any_of(kNames, [&](std::string_view name) { return model.starts_with(name); });
  return row.gemm_precision == "fp8_block" || published;
}

// The layers that the published weights of a model in 4 bits have in them: gpt-oss's and Kimi's experts alone
// (quantization_config in their config.json: modules_to_not_convert and ignore), all but attention in NVIDIA's
// DeepSeek-R1 (Model-Optimizer, issue 150), all in others.
std::string_view layers_of(std::string_view model) {
  if (model.starts_with("gpt-oss") || model.starts_with("kimi")) return "experts";
  return model.starts_with("deepseek") ? "feed_forward" : "all";
}

// Whether the GPU has no products in 4 bits, so that kernels widen such weights.
bool widens(const ServedRow& row) {
  const int capability = find_gpu(row.gpu).compute_capability;
  return capability > 0 && capability < 100;
}

// gpt-oss's weights are in mxfp4. GPUs without products in 4 bits widen weights in 4 bits to bf16 (vLLM and
// TensorRT-LLM: Marlin, Triton and CUTLASS kernels for weights alone); on Blackwell TensorRT-LLM multiplies those in
// mxfp4 by inputs in mxfp8 (its kernels' names in measurements: w4a8_mxfp4_mxfp8), SGLang by inputs in bf16 (its
// default there: flashinfer_trtllm_mxfp4_bf16). vLLM has both (VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8); that its rows are
// in mxfp8 is an inference, from their times per token.
RowFormats formats_in_four_bits(const ServedRow& row, const std::string& model) {
  const bool mx = model.starts_with("gpt-oss"), wide = widens(row);
  const auto of = [&](std::string_view weights) {
    return fmt::format("{{weights: {}, layers: {}}}", weights, layers_of(model));
  };
  if (mx) return {wide || stack_of(row) == "sglang" ? "bf16" : "mxfp8", of("mxfp4")};
  return {wide ? "bf16" : "nvfp4", of("nvfp4")};
}

// Weights in int4 alone have groups of 128, the default of AutoAWQ and AutoGPTQ.
RowFormats formats_of(const ServedRow& row, const std::string& model) {
  const std::string& word =
      row.gemm_precision.empty() || row.gemm_precision == "fp8_block" ? row.precision : row.gemm_precision;
  if (word == "fp4" || word == "nvfp4") return formats_in_four_bits(row, model);
  if (word == "int4_wo" || word == "w4a16" || word.starts_with("int4 weights"))
    return {"bf16", fmt::format("{{weights: int4, layers: {}}}", layers_of(model))};
  if (word.empty() || word == "bfloat16") return {"bf16", "{}"};
  return {word == "fp8" || word == "bf16" || word == "fp16" ? word : "", "{}"};
}

// Whether a row is of a release of vLLM from 0.`minor` on, as its framework says ("vllm 0.12.0"). Rows that name no
// release are taken for older ones, with which their time per token agrees: an inference, the rows do not say it.
bool is_vllm_since(const std::string& framework, int minor) {
  std::smatch version;
  static const std::regex kVersion("[vV][lL][lL][mM] v?(nightly|([0-9]{1,3})\\.([0-9]{1,3}))");
  if (!std::regex_search(framework, version, kVersion)) return false;
  return !version[2].matched || std::stoi(version[2]) > 0 || std::stoi(version[3]) >= minor;
}

// The kernels of experts that a row's release of vLLM runs, where they are not those of `expert_kernels: vllm`; ""
// else. Where products widen weights in 4-bit floats, it has Marlin's and Triton's (vllm-project/vllm, pull request
// 27523: Marlin's answer sooner on Hopper; its environment variable VLLM_MXFP4_USE_MARLIN chooses). Rows do not say
// which: their prompts take as long as with Marlin's, an inference. On data centres' Blackwell, weights in 8 bits with
// a scale for each block run by FlashInfer's kernels if these know the model's router, else by DeepGEMM's (vLLM,
// fused_moe/oracle/fp8.py has the order). MiniMax's router (sigmoid without groups of experts) they know since vLLM
// routes outside of them (TrtLlmFp8ExpertsModular, fused_moe/experts/trtllm_fp8_moe.py): from 0.18 on, an inference
// from its rows' times per token, which fall there. DeepGEMM's times were measured with TensorRT-LLM, hence `trtllm`.
std::string_view other_expert_kernels(const ServedRow& row, const RowFormats& formats, const std::string& model) {
  if (!stack_of(row).starts_with("vllm")) return "";
  const bool floats = formats.precision == "bf16" && formats.quantise.find("fp4") != std::string::npos;
  const bool measured = !find_expert_laws("marlin", find_gpu(row.gpu)).empty();
  if (floats && measured) return "marlin";
  const int capability = find_gpu(row.gpu).compute_capability;
  const bool blackwell = capability >= 100 && capability < 120, minimax = model.starts_with("minimax");
  return formats.precision == "fp8" && blackwell && minimax && !is_vllm_since(row.framework, 18) ? "trtllm" : "";
}

// The stack of a row as a spec names it.
std::string software_of(const ServedRow& row, const RowFormats& formats, const std::string& model) {
  const std::string_view kernels = other_expert_kernels(row, formats, model);
  if (kernels.empty()) return stack_of(row);
  return fmt::format("{{profile: {}, expert_kernels: {}}}", stack_of(row), kernels);
}

std::string cluster_of(const ServedRow& row) {
  const bool rack = row.gpu.starts_with("gb");
  const std::int64_t a_node = rack ? 4 : row.gpu.starts_with("gh") ? 1 : 8, nodes = (row.gpus + a_node - 1) / a_node;
  const std::int64_t on_switch = served_options(row).gpus_per_switch;
  const std::string joined = rack ? ", nvlink_domain: 72" : fmt::format(", pcie: {{gpus_per_switch: {}}}", on_switch);
  return fmt::format("{{gpu: {}, gpus_per_node: {}, nodes: {}, nics: {}, nic_Gbps: 400{}}}", row.gpu, a_node, nodes,
                     a_node, joined);
}

// The key for the precision of a row's cache. Rows that do not say it have 8 bits if `narrow`, else the
// activations' 16.
std::string cache_of(const ServedRow& row, bool narrow) {
  const std::string& said = row.cache_precision;
  const std::string word = said.empty() && narrow ? "fp8" : said.substr(0, said.find(' '));
  if (word.empty() || word == "bf16" || word == "fp16" || word == "bfloat16" || word == "auto") return "";
  if (word == "fp8" || word == "nvfp4" || word == "int8" || word == "int4")
    return fmt::format(", kv_precision: {}", word);
  throw Error(fmt::format("kv_cache {} is not built in", said));
}

// Sets how many weights share a scale: blocks of 128 in 8 bits, and 32 in mxfp4; fewer where a
// rank's part of an expert's width is no multiple of that (192 of Qwen3-235B on 8 ranks, 360 of gpt-oss).
void set_groups(const ServedRow& row, const std::string& model, Spec& spec) {
  WeightFormat& weights = spec.strategy.weights;
  const Moe* moe = spec.model.moe ? &*spec.model.moe : nullptr;
  const auto choose = [&](std::initializer_list<std::int64_t> groups) {
    const std::int64_t part = moe != nullptr ? moe->feed_forward / spec.strategy.expert_tensor : 0;
    for (const std::int64_t group : groups) {
      weights.group = group;
      if (part % group == 0) return;
    }
    throw Error(fmt::format("no group of weights divides the {} columns of an expert on a rank", part));
  };
  if (weights.code == WeightCode::fp8 && has_blocks(row, model)) choose({128, 64, 32});
  if (weights.code == WeightCode::mxfp4) choose({32, 16, 8});
}

}  // namespace

// Whether a framework's text has a stack's name in it, in whatever case ("vLLM 0.11", "ROCm vLLM").
static bool has_name(std::string_view framework, std::string_view stack) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  return std::search(framework.begin(), framework.end(), stack.begin(), stack.end(), same) != framework.end();
}

std::string stack_of(const ServedRow& row) {
  // Before 1.0 models were compiled to engines; since then PyTorch runs them. "trtllm 0.8" is the tag of a container of
  // Dynamo, which holds a 1.x.
  static const std::regex kEarly("^TensorRT-LLM 0\\.[0-9]([^0-9]|$)");
  if (std::regex_search(row.framework, kEarly)) return "tensorrt-llm-0.9";
  if (row.framework.starts_with("TensorRT-LLM 0.")) return "tensorrt-llm-engines";
  if (row.framework.starts_with("TensorRT") || row.framework.starts_with("trtllm")) return "tensorrt-llm";
  constexpr int kAheadSince = 14;  // since this release vLLM schedules the next pass while one runs
  if (has_name(row.framework, "vllm")) return is_vllm_since(row.framework, kAheadSince) ? "vllm" : "vllm-synchronous";
  for (const char* stack : {"sglang", "lmdeploy", "tinychat"}) {
    if (has_name(row.framework, stack)) return stack;
  }
  if (has_name(row.framework, "turbomind")) return "lmdeploy";
  throw Error(fmt::format("stack {} is not built in", row.framework.substr(0, row.framework.find(' '))));
}

Spec served_spec(const ServedRow& row, std::int64_t batch, std::int64_t output) {
  const std::string model = canonical_model(row.model);
  const RowFormats formats = formats_of(row, model);
  const std::string& precision = formats.precision;
  if (precision.empty()) throw Error(fmt::format("precision {} is not built in", row.precision));
  // Rows name no checkpoint. Those in nvfp4 are taken to be NVIDIA's, which ask for a cache in 8 bits
  // (kv_cache_quant_algo); every stack follows them (vLLM, utils/torch_utils.py: resolve_kv_cache_dtype_string; SGLang,
  // model_runner.py: configure_kv_cache_dtype). So are those in fp8 of TensorRT-LLM alone.
  const bool narrow = row.precision == "nvfp4" || precision == "nvfp4" ||
                      (precision == "fp8" && stack_of(row).starts_with("tensorrt-llm"));
  const std::string cache = cache_of(row, narrow);
  const ServedOptions options = served_options(row);
  const std::string drafts =
      options.drafts > 0 ? fmt::format(", drafts: {}, acceptance: {}", options.drafts, options.acceptance) : "";
  const std::int64_t data = row.attention_data, tensor = std::max<std::int64_t>(1, row.tensor / data);
  const std::string experts =
      row.expert > 0 ? fmt::format(", expert: {}{}", row.expert, data > 1 ? ", expert_tensor: 1" : "") : "";
  const auto text = [&](std::string_view with_experts) {
    return fmt::format(
        "{{model: {}, workload: generate, generate: {{batch: {}, input: {}, output: {}{}{}}}, cluster: {}, gpus: {}, "
        "software: {}, strategy: {{tensor: {}, pipeline: {}, data: {}, precision: {}, quantise: {}{}}}}}",
        model, (batch + data - 1) / data * data, row.input, output, cache, drafts, cluster_of(row), row.gpus,
        software_of(row, formats, model), tensor, row.pipeline, data, precision, formats.quantise, with_experts);
  };
  const Spec plain = parse_spec(text(""), "row");
  Spec spec = plain.model.moe && !experts.empty() ? parse_spec(text(experts), "row") : plain;
  set_groups(row, model, spec);
  return spec;
}

}  // namespace orrery
