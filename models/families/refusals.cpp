// This file rejects models with types of layers that Orrery cannot simulate; each error message has the reason and what
// the user can do.
#include <algorithm>

#include <fmt/format.h>

#include "models/families/family.h"

namespace orrery {
namespace {

using nlohmann::json;

// A type of model that is rejected: the reason, and the values of model_type that identify it, each with a space before
// and after it.
struct RefusedKind {
  std::string_view reason, types;
};

constexpr std::string_view kWay =
    "choose a decoder-only model of attention layers, Qwen3-Next, Nemotron-H or DeepSeek-V4, or give sizes under "
    "model:";
constexpr std::string_view kPair = "an encoder-decoder, of which only decoders are built";
constexpr std::string_view kEncoder = "an encoder, which does not predict a next token";
constexpr std::string_view kState = "such layers with a state (Mamba, RWKV, recurrences) are not built";
constexpr std::string_view kLinear = "such layers of linear attention are not built";
constexpr std::string_view kUnlike = "layers of unlike sizes are not built";

constexpr std::string_view kIndexed = "sparse attention with such an index of its own is not built";
constexpr std::string_view kCompressed = "attention to compressed keys is built for DeepSeek-V4 alone";
constexpr std::string_view kImages = "layers of attention to images are not built";

constexpr RefusedKind kRefusedKinds[] = {
    {kPair,
     " t5 mt5 umt5 byt5 longt5 t5gemma switch_transformers bart mbart pegasus pegasus_x led marian m2m_100 nllb-moe "
     "blenderbot blenderbot-small fsmt prophetnet whisper encoder-decoder seamless_m4t "},
    {kEncoder,
     " bert roberta xlm-roberta camembert electra deberta deberta-v2 distilbert albert modernbert mpnet longformer "
     "big_bird vit clip siglip "},
    {kState,
     " mamba mamba2 falcon_mamba falcon_h1 jamba zamba zamba2 bamba granitemoehybrid recurrent_gemma rwkv "
     "lfm2 lfm2_moe plamo2 "},
    {kLinear, " minimax minimax_text_01 minimax_m1 kimi_linear bailing_moe_linear olmo_hybrid "},
    {kUnlike, " nemotron-nas deci decilm openelm gemma3n gemma3n_text "},
    {kImages, " mllama mllama_text_model "},
    {"a bias on the logits is not built", " phi phimoe codegen "},
    {"experts beside a dense MLP are not built", " arctic "},
    {"block-sparse attention is not built", " phi3small "},
    {"an activation with weights of its own is not built", " apertus "},
    {"two attentions in a layer are not built", " longcat_flash "},
};

// A key by which a config.json is recognized as one of a rejected type of model, whatever its model_type. Models of the
// families in hybrid_families.cpp, whose layers Orrery can simulate, may have such keys.
struct Mark {
  const char* key;
  std::string_view reason;
};
constexpr Mark kMarks[] = {
    {"block_configs", kUnlike},
    {"hybrid_override_pattern", kState},
    {"mamba_num_heads", kState},
    {"mamba_d_state", kState},
    {"ssm_cfg", kState},
    {"linear_num_value_heads", kLinear},
    {"linear_attn_config", kLinear},
    {"cross_attention_layers", kImages},
    {"compress_ratios", kCompressed},
    {"index_topk", kIndexed},
};

[[noreturn]] void refuse(const Config& config, std::string_view key, std::string_view reason) {
  config.fail(key, fmt::format("{}; {}", reason, kWay));
}

// Returns the error message for models that NVIDIA made by neural architecture search, with their number of layers
// without attention.
std::string unlike_blocks(const json& blocks) {
  const auto without = std::count_if(blocks.begin(), blocks.end(), [](const json& block) {
    const auto part = block.is_object() ? block.find("attention") : block.end();
    return block.is_object() && part != block.end() && part->is_object() && part->value("no_op", json()) == true;
  });
  return fmt::format("{}: {} of {} have no attention", kUnlike, without, blocks.size());
}

}  // namespace

void refuse_kinds(const Config& config) {
  const std::string type = config.text({"model_type"});
  const bool built = std::ranges::find(hybrid_families(), type, &Family::model_type) != hybrid_families().end();
  for (const Mark& mark : kMarks) {
    const json* value = built ? nullptr : config.find({mark.key});
    if (value != nullptr)
      refuse(config, mark.key,
             std::string_view(mark.key) == "block_configs" ? unlike_blocks(*value) : std::string(mark.reason));
  }
  for (const RefusedKind& kind : kRefusedKinds) {
    if (!type.empty() && kind.types.find(" " + type + " ") != std::string_view::npos)
      refuse(config, "model_type", fmt::format("{}: {}", type, kind.reason));
  }
  if (config.flag({"is_encoder_decoder"}, false)) refuse(config, "is_encoder_decoder", kPair);
  // MiniMax: attn_type_list has a 1 for each layer with softmax attention and a 0 for each layer with lightning
  // attention.
  if (const json* list = config.find({"attn_type_list"}); list != nullptr && list->is_array()) {
    const auto linear = std::count_if(list->begin(), list->end(), [](const json& kind) { return kind != 1; });
    if (linear > 0) refuse(config, "attn_type_list", fmt::format("{}: {} of {}", kLinear, linear, list->size()));
  }
}

}  // namespace orrery
