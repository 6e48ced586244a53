#include "models/families/hugging_face.h"

// Reads a Hugging Face config.json as the configuration classes of transformers do: a key that is absent has the
// default of its family's class.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/json_value.h"
#include "models/base/names.h"
#include "models/base/once_by_name.h"
#include "models/families/family.h"
#include "models/families/parts.h"

namespace orrery {
namespace {

using nlohmann::json;
using namespace habit;

constexpr Keys kFeedForward = {"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"};
constexpr Keys kPositionKeys = {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"};

Mla read_mla(const Config& config) {
  Mla a;
  a.q_lora_rank = config.count({"q_lora_rank"}, 0);
  a.kv_lora_rank = config.count({"kv_lora_rank"});
  a.qk_nope_head_dim = config.count({"qk_nope_head_dim"});
  a.qk_rope_head_dim = config.count({"qk_rope_head_dim"});
  a.v_head_dim = config.count({"v_head_dim"}, 0);
  if (config.flag({"attention_bias"}, false))
    config.fail("attention_bias", "true: biases of latent attention alone are not built; choose another model");
  return a;
}

void read_sizes(const Config& config, const Family& family, Model& m) {
  m.layers = config.size({"num_hidden_layers", "n_layers", "num_layers", "n_layer"});
  if (m.layers > kMostLayers)
    config.fail("num_hidden_layers", fmt::format("{} is not between 1 and {}", m.layers, kMostLayers));
  m.hidden = config.size({"hidden_size", "n_embd", "d_model", "n_embed"});
  m.heads = config.size({"num_attention_heads", "n_head", "n_heads", "num_heads"});
  m.kv_heads = config.count({"num_key_value_heads", "multi_query_group_num"}, m.heads);
  m.feed_forward = family.has(kFourfold) ? config.count(kFeedForward, 4 * m.hidden) : config.size(kFeedForward);
  m.vocab = config.size({"padded_vocab_size", "vocab_size"});
  if (family.has(kLatent) || config.find({"kv_lora_rank"}) != nullptr) m.mla = read_mla(config);
  const std::int64_t given = config.count({"head_dim", "kv_channels"}, 0);
  if (m.mla) {
    m.head_dim = m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim;
  } else if (given > 0 || m.heads == 0) {
    m.head_dim = given;
  } else if (m.hidden % m.heads == 0) {
    m.head_dim = m.hidden / m.heads;
  } else {
    config.fail("head_dim", fmt::format("missing, and {} heads do not divide {}", m.heads, m.hidden));
  }
}

void read_habits(const Config& config, const Family& family, Model& m) {
  m.gated = !family.has(kUngated);
  m.norm = family.has(kLayerNorm) ? Norm::layernorm : Norm::rmsnorm;
  m.norm_bias = !family.has(kNoNormBias);
  m.bias = family.has(kBias);
  m.mlp_bias = config.flag({"mlp_bias"}, false);
  const bool biased = !m.mla && config.flag({"attention_bias"}, false);
  m.qkv_bias = biased || family.has(kQkvBias);
  m.attention_output_bias = biased && !family.has(kOnlyQkvBias);
  m.qk_norm = family.has(kQkNorm);
  m.qk_norm_all = family.has(kQkNormAll);
  m.pre_norms = !family.has(kNoPreNorms);
  m.post_norms = family.has(kPostNorms);
  m.parallel_block = family.has(kParallel);
  m.scaled_embedding = family.has(kScaledEmbedding);
  m.positions = family.has(kLearned) ? Positions::learned : family.has(kAlibi) ? Positions::alibi : Positions::rope;
  m.attention_softcap = config.real({"attn_logit_softcapping"}, 0);
  m.logit_softcap = config.real({"final_logit_softcapping"}, 0);
  m.activation_clamp = config.real({"swiglu_limit"}, 0);
  m.dropout = config.real({"resid_pdrop", "dropout", "hidden_dropout", "attention_dropout"}, 0);
}

void read_positions(const Config& config, Model& m) {
  m.trained_positions = config.count(kPositionKeys, 0);
  if (m.positions != Positions::learned) return;
  m.max_positions = config.size(kPositionKeys);
  m.trained_positions = 0;
}

Model read_family(const Config& config, const Family& family) {
  Model m;
  read_sizes(config, family, m);
  read_habits(config, family, m);
  read_positions(config, m);
  m.sliding_window = read_window(config, family, m.layers);
  m.moe = read_experts(config, family, m);
  m.mtp_layers = config.count({"num_nextn_predict_layers"}, 0);
  if (family.adjust != nullptr) family.adjust(config, m);
  if (m.mla && m.mla->v_head_dim == 0) config.fail("v_head_dim", "missing");
  return m;
}

const Family* find_family(const std::string& type, const std::string& architecture,
                          std::vector<std::string_view>& known) {
  for (const auto rows : {gpt_families(), dense_families(), expert_families(), hybrid_families()}) {
    for (const Family& family : rows) {
      const bool same =
          type.empty() ? !architecture.empty() && family.architecture == architecture : family.model_type == type;
      if (same) return &family;
      known.push_back(family.model_type);
    }
  }
  return nullptr;
}

}  // namespace

const Family& family_of(const Config& config) {
  const std::string type = config.text({"model_type"});
  const json* list = config.find({"architectures"});
  const bool listed = list != nullptr && list->is_array() && !list->empty() && list->front().is_string();
  const std::string architecture = listed ? list->front().get<std::string>() : "";
  std::vector<std::string_view> known;
  if (const Family* family = find_family(type, architecture, known)) return *family;
  config.fail("model_type", unknown_name("family", type.empty() ? architecture : type, known) +
                                "; or give the model's sizes under model:");
}

Model parse_hugging_face(const std::string& text, const std::string& path) {
  const json whole = parse_json(path, with_quoted_words(text), "a config.json of Hugging Face is needed");
  if (!whole.is_object()) throw Error(fmt::format("{}:1: not a config.json: an object {{...}} is needed", path));
  const TextPart part = text_part(whole);
  Config config(*part.object, path, part.key != nullptr);
  refuse_kinds(Config(whole, path));
  refuse_kinds(config);
  const Family& family = family_of(config);
  config.set_defaults(family.defaults);
  Model m = read_family(config, family);
  m.name = Config(whole, path).text({"_name_or_path"});
  m.tied_embeddings = is_tied(config, Config(whole, path));
  m.vision = read_encoder(Config(whole, path), m.hidden);
  const std::vector<std::string> remarks = remarks_of(config, Config(whole, path), part, m);
  m.remarks.insert(m.remarks.end(), remarks.begin(), remarks.end());
  if (const std::string broken = broken_rule(m); !broken.empty()) throw Error(fmt::format("{}: {}", path, broken));
  return m;
}

Model find_model(std::string_view name) {
  const std::vector<std::string_view> known = data_names("models");
  if (std::find(known.begin(), known.end(), name) == known.end()) throw Error(unknown_name("model", name, known));
  static OnceByName<Model> models;
  return models.of(name, [&] {
    const std::string file = fmt::format("models/{}.json", name);
    Model m = parse_hugging_face(std::string(data_file(file)), file);
    m.name = name;
    // A built-in model needs no remarks (messages for the user) about what its file leaves out: tests compare its
    // number of parameters with the published one.
    m.remarks.clear();
    return m;
  });
}

}  // namespace orrery
