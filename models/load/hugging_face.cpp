#include "models/load/hugging_face.h"

// A Hugging Face config.json, as transformers' own configuration classes read it: a key that is absent takes the
// default of its family's class.
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/base/json_value.h"
#include "models/base/names.h"

namespace orrery {
namespace {

using nlohmann::json;
using Keys = std::initializer_list<const char*>;

enum class Experts : std::uint8_t { none, mixtral, qwen, deepseek };

// Properties that a family of models has without saying so. kv_heads, head_dim 0 = derived (heads, hidden / heads).
struct Family {
  std::string_view model_type;
  std::string_view architecture;
  bool tied = false;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool post_norms = false;
  bool scaled_embedding = false;
  double attention_softcap = 0, logit_softcap = 0;
  bool sigmoid = false;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t window = 0;        // default of sliding_window, 0 = none
  std::int64_t window_every = 1;  // default of the windows' pattern
  Experts experts = Experts::none;
};

constexpr Family kFamilies[] = {
    {.model_type = "gpt2", .architecture = "GPT2LMHeadModel", .tied = true},
    {.model_type = "llama", .architecture = "LlamaForCausalLM"},
    {.model_type = "mistral", .architecture = "MistralForCausalLM", .kv_heads = 8, .window = 4096},
    {.model_type = "mixtral", .architecture = "MixtralForCausalLM", .kv_heads = 8, .experts = Experts::mixtral},
    {.model_type = "qwen2", .architecture = "Qwen2ForCausalLM", .qkv_bias = true},
    {.model_type = "qwen3", .architecture = "Qwen3ForCausalLM", .qk_norm = true, .head_dim = 128},
    {.model_type = "qwen2_moe", .architecture = "Qwen2MoeForCausalLM", .qkv_bias = true, .experts = Experts::qwen},
    {.model_type = "qwen3_moe", .architecture = "Qwen3MoeForCausalLM", .qk_norm = true, .experts = Experts::qwen},
    {.model_type = "gemma",
     .architecture = "GemmaForCausalLM",
     .tied = true,
     .scaled_embedding = true,
     .head_dim = 256},
    {.model_type = "gemma2",
     .architecture = "Gemma2ForCausalLM",
     .tied = true,
     .post_norms = true,
     .scaled_embedding = true,
     .attention_softcap = 50,
     .logit_softcap = 30,
     .kv_heads = 4,
     .head_dim = 256,
     .window = 4096,
     .window_every = 2},
    {.model_type = "gemma3_text",
     .architecture = "Gemma3ForCausalLM",
     .tied = true,
     .qk_norm = true,
     .post_norms = true,
     .scaled_embedding = true,
     .kv_heads = 4,
     .head_dim = 256,
     .window = 4096,
     .window_every = 6},
    {.model_type = "deepseek_v2", .architecture = "DeepseekV2ForCausalLM", .experts = Experts::deepseek},
    {.model_type = "deepseek_v3",
     .architecture = "DeepseekV3ForCausalLM",
     .sigmoid = true,
     .experts = Experts::deepseek},
    {.model_type = "kimi_k2", .architecture = "", .sigmoid = true, .experts = Experts::deepseek},
};

// The file's values, with errors that name the file and the key.
class Config {
 public:
  Config(const json& object, std::string path) : object_(object), path_(std::move(path)) {}

  [[noreturn]] void fail(std::string_view key, std::string_view what) const {
    throw Error(printable(fmt::format("{}: {}: {}", path_, key, what)));
  }
  const json* find(Keys keys) const {
    for (const char* key : keys) {
      const auto found = object_.find(key);
      if (found != object_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }
  bool has(const char* key) const { return object_.contains(key); }  // true for a null too

  std::int64_t count(Keys keys, std::int64_t absent) const {
    const json* value = find(keys);
    if (value == nullptr) return absent;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(number >= 0 && number <= 1e15) || number != std::floor(number)) {
      fail(*keys.begin(), fmt::format("{} is not a sensible whole number", value->dump().substr(0, 40)));
    }
    return static_cast<std::int64_t>(number);
  }
  std::int64_t count(Keys keys) const {
    if (find(keys) == nullptr) fail(*keys.begin(), "missing");
    return count(keys, 0);
  }
  bool flag(Keys keys, bool absent) const {
    const json* value = find(keys);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) fail(*keys.begin(), fmt::format("{} is not true or false", value->dump().substr(0, 40)));
    return value->get<bool>();
  }
  double real(Keys keys, double absent) const {
    const json* value = find(keys);
    if (value == nullptr) return absent;
    const double number = value->is_number() ? value->get<double>() : std::nan("");
    if (!(std::abs(number) <= 1e15))
      fail(*keys.begin(), fmt::format("{} is not a sensible number", value->dump().substr(0, 40)));
    return number;
  }
  std::string text(Keys keys) const {
    const json* value = find(keys);
    if (value == nullptr) return "";
    if (!value->is_string()) fail(*keys.begin(), fmt::format("{} is not a name", value->dump().substr(0, 40)));
    const std::string name = value->get<std::string>();
    if (!is_printable(name)) fail(*keys.begin(), "holds a control character; leave it out");
    return name;
  }

 private:
  const json& object_;
  std::string path_;
};

const Family& family_of(const Config& config) {
  const std::string type = config.text({"model_type"});
  const json* list = config.find({"architectures"});
  const bool listed = list != nullptr && list->is_array() && !list->empty() && list->front().is_string();
  const std::string architecture = listed ? list->front().get<std::string>() : "";
  std::vector<std::string_view> known;
  for (const Family& family : kFamilies) {
    const bool same =
        type.empty() ? !architecture.empty() && family.architecture == architecture : family.model_type == type;
    if (same) return family;
    known.push_back(family.model_type);
  }
  config.fail("model_type", unknown_name("family", type.empty() ? architecture : type, known));
}

Model read_gpt2(const Config& config) {
  Model m;
  m.layers = config.count({"n_layer", "num_hidden_layers"});
  m.hidden = config.count({"n_embd", "hidden_size"});
  m.heads = m.kv_heads = config.count({"n_head", "num_attention_heads"});
  m.feed_forward = config.count({"n_inner"}, 4 * m.hidden);
  m.max_positions = config.count({"n_positions", "n_ctx", "max_position_embeddings"});
  m.gated = false;
  m.bias = true;
  m.positions = Positions::learned;
  m.norm = Norm::layernorm;
  m.dropout = config.real({"resid_pdrop"}, 0.1);
  return m;
}

Mla read_mla(const Config& config) {
  Mla a;
  a.q_lora_rank = config.count({"q_lora_rank"}, 0);
  a.kv_lora_rank = config.count({"kv_lora_rank"});
  a.qk_nope_head_dim = config.count({"qk_nope_head_dim"});
  a.qk_rope_head_dim = config.count({"qk_rope_head_dim"});
  a.v_head_dim = config.count({"v_head_dim"});
  return a;
}

// Layers that stay dense must be the first ones: anything else is more than (first_layer, every) can say.
void read_qwen_pattern(const Config& config, Moe& moe) {
  moe.every = std::max<std::int64_t>(1, config.count({"decoder_sparse_step"}, 1));
  moe.first_layer = moe.every - 1;  // transformers has experts where (layer + 1) % step == 0
  const json* dense = config.find({"mlp_only_layers"});
  if (dense == nullptr || (dense->is_array() && dense->empty())) return;
  json leading = json::array();
  for (std::size_t i = 0; i < dense->size(); ++i) leading.push_back(i);
  if (*dense != leading || moe.every != 1) {
    config.fail("mlp_only_layers", "only the first layers (0, 1, ...) may stay dense");
  }
  moe.first_layer = static_cast<std::int64_t>(dense->size());
}

// The method by which a token's experts are chosen. DeepSeek-V3's own configuration class has no key for it and knows
// one method.
std::string top_method(const Config& config, const Family& family) {
  std::string method = config.text({"topk_method"});
  if (method.empty()) return family.sigmoid ? "noaux_tc" : "greedy";
  constexpr std::string_view known[] = {"greedy", "group_limited_greedy", "noaux_tc"};
  if (std::find(std::begin(known), std::end(known), method) == std::end(known))
    config.fail("topk_method", unknown_name("way", method, known));
  return method;
}

Moe read_moe(const Config& config, const Family& family, std::int64_t feed_forward) {
  Moe moe;
  moe.experts = config.count({"n_routed_experts", "num_local_experts", "num_experts", "num_routed_experts"});
  moe.top_k = config.count({"num_experts_per_tok", "moe_topk", "top_k"});
  moe.feed_forward = family.experts == Experts::mixtral ? feed_forward : config.count({"moe_intermediate_size"});
  moe.aux_loss = config.real({"router_aux_loss_coef", "aux_loss_alpha"}, 0.001);
  if (family.experts == Experts::qwen) {
    moe.shared_feed_forward = config.count({"shared_expert_intermediate_size"}, 0);
    moe.shared_gate = moe.shared_feed_forward > 0;
    read_qwen_pattern(config, moe);
  }
  if (family.experts == Experts::deepseek) {
    const std::int64_t shared = config.count({"n_shared_experts", "num_shared_experts"}, 0);
    moe.shared_feed_forward = shared * moe.feed_forward;
    moe.every = std::max<std::int64_t>(1, config.count({"moe_layer_freq"}, 1));
    moe.first_layer = ceil_div(config.count({"first_k_dense_replace"}, 0), moe.every) * moe.every;
    const std::string score = config.text({"scoring_func"});
    moe.sigmoid_scores = score.empty() ? family.sigmoid : score == "sigmoid";
    const std::string method = top_method(config, family);
    const bool limited = method == "noaux_tc" || method == "group_limited_greedy";
    moe.expert_groups = limited ? std::max<std::int64_t>(1, config.count({"n_group"}, 1)) : 1;
    moe.top_groups = limited ? std::max<std::int64_t>(1, config.count({"topk_group"}, 1)) : 1;
  }
  return moe;
}

// Layers from one with full attention to the next. Newer files list the kind of every layer: the first that attends to
// everything gives the pattern.
std::int64_t window_every(const Config& config, const Family& family) {
  if (const json* kinds = config.find({"layer_types"}); kinds != nullptr && kinds->is_array()) {
    const auto full = std::find(kinds->begin(), kinds->end(), "full_attention");
    return full == kinds->end() ? 1 : full - kinds->begin() + 1;
  }
  return std::max<std::int64_t>(1, config.count({"sliding_window_pattern"}, family.window_every));
}

std::optional<SlidingWindow> read_window(const Config& config, const Family& family, std::int64_t layers) {
  if (!config.flag({"use_sliding_window"}, !family.model_type.starts_with("qwen"))) return std::nullopt;
  const std::int64_t window = config.count({"sliding_window"}, config.has("sliding_window") ? 0 : family.window);
  if (window == 0) return std::nullopt;
  const std::int64_t whole = config.count({"max_window_layers"}, 0);  // Qwen: the first layers attend to everything
  if (whole >= layers) return std::nullopt;
  if (whole > 0) config.fail("max_window_layers", "a window on only the last layers is not supported; use 0");
  return SlidingWindow{window, window_every(config, family)};
}

// A soft cap; a null in the file turns the cap off.
double softcap(const Config& config, const char* key, double absent) {
  return config.real({key}, config.has(key) ? 0 : absent);
}

Model read_decoder(const Config& config, const Family& family) {
  Model m;
  m.layers = config.count({"num_hidden_layers", "n_layers", "num_layers"});
  m.hidden = config.count({"hidden_size"});
  m.heads = config.count({"num_attention_heads"});
  m.kv_heads = config.count({"num_key_value_heads"}, family.kv_heads > 0 ? family.kv_heads : m.heads);
  m.feed_forward = config.count({"intermediate_size"});
  m.bias = config.flag({"mlp_bias"}, false);
  // Llama also biases attention's output, which is left out here
  m.qkv_bias = config.flag({"attention_bias"}, family.qkv_bias);
  m.qk_norm = family.qk_norm;
  m.post_norms = family.post_norms;
  m.scaled_embedding = family.scaled_embedding;
  m.attention_softcap = softcap(config, "attn_logit_softcapping", family.attention_softcap);
  m.logit_softcap = softcap(config, "final_logit_softcapping", family.logit_softcap);
  m.dropout = config.real({"attention_dropout"}, 0);
  m.sliding_window = read_window(config, family, m.layers);
  if (config.find({"kv_lora_rank"}) != nullptr || family.experts == Experts::deepseek) m.mla = read_mla(config);
  const std::int64_t usual = family.head_dim > 0 || m.heads == 0 ? family.head_dim : m.hidden / m.heads;
  m.head_dim = m.mla ? m.mla->qk_nope_head_dim + m.mla->qk_rope_head_dim : config.count({"head_dim"}, usual);
  const bool routed =
      config.count({"n_routed_experts", "num_local_experts", "num_experts", "num_routed_experts"}, 0) > 0;
  if (family.experts != Experts::none && routed) {
    m.moe = read_moe(config, family, m.feed_forward);
    m.moe->correction_bias = family.sigmoid && top_method(config, family) == "noaux_tc";
  }
  m.mtp_layers = config.count({"num_nextn_predict_layers"}, 0);
  m.trained_positions = config.count({"max_position_embeddings"}, 0);
  return m;
}

}  // namespace

Model parse_hugging_face(const std::string& text, const std::string& path) {
  const json whole = parse_json(path, text, "a config.json of Hugging Face is needed");
  if (!whole.is_object()) throw Error(fmt::format("{}:1: not a config.json: an object {{...}} is needed", path));
  const auto nested = whole.find("text_config");  // multi-modal files hold the decoder's keys one level down
  const bool inner = nested != whole.end() && nested->is_object();
  const Config config(inner ? *nested : whole, path);
  const Family& family = family_of(config);
  Model m = family.model_type == "gpt2" ? read_gpt2(config) : read_decoder(config, family);
  m.name = Config(whole, path).text({"_name_or_path"});
  m.vocab = config.count({"vocab_size"});
  m.tied_embeddings = config.flag({"tie_word_embeddings"}, family.tied);
  if (m.head_dim == 0 && m.heads > 0) m.head_dim = m.hidden / m.heads;
  if (const std::string broken = broken_rule(m); !broken.empty()) throw Error(fmt::format("{}: {}", path, broken));
  return m;
}

Model find_model(std::string_view name) {
  const std::vector<std::string_view> known = data_names("models");
  if (std::find(known.begin(), known.end(), name) == known.end()) throw Error(unknown_name("model", name, known));
  const std::string file = fmt::format("models/{}.json", name);
  Model m = parse_hugging_face(std::string(data_file(file)), file);
  m.name = name;
  return m;
}

}  // namespace orrery
