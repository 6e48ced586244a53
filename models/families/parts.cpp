// This file finds the text model in files that describe several models, and makes messages about properties that the
// file states and the planned model lacks.
#include "models/families/parts.h"

#include <fmt/format.h>

namespace orrery {
namespace {

using nlohmann::json;

constexpr const char* kTextKeys[] = {"text_config", "llm_config", "language_config"};

constexpr Keys kTied = {"tie_word_embeddings"};
constexpr Keys kVision = {"vision_config", "vision_tower", "mm_vision_tower", "vision_model",
                          "visual",        "vit_config",   "img_processor"};
constexpr Keys kAudio = {"audio_config", "sound_config", "speech_config"};

const json* object_in(const json& whole, const char* key) {
  const auto found = whole.find(key);
  return found != whole.end() && found->is_object() ? &*found : nullptr;
}

// Returns the message that the file's vision and audio encoders are left out. If a vision encoder was read, this
// function returns no message about it, because settle_images() says whether it is left out (if the spec's samples have
// no images).
std::string other_parts_remark(const Config& whole, const TextPart& part, const Model& m) {
  const bool vision = whole.find(kVision) != nullptr && !m.vision, audio = whole.find(kAudio) != nullptr;
  if (!vision && !audio) return part.key == nullptr || m.vision ? "" : fmt::format("{} alone is read", part.key);
  return fmt::format("the {} left out: parameters, time and memory are those of the text model",
                     vision && audio ? "vision and audio parts are"
                     : vision        ? "vision part is"
                                     : "audio part is");
}

std::string window_remark(const Model& m) {
  std::int64_t windowed = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) windowed += has_window(m, i) ? 1 : 0;
  if (windowed == 0 || windowed == m.layers) return "";
  return fmt::format("sliding_window: {} of {} layers attend within {} tokens", windowed, m.layers,
                     m.sliding_window->window);
}

std::string quantization_remark(const Config& whole) {
  const json* stored = whole.find({"quantization_config"});
  if (stored == nullptr || !stored->is_object()) return "";
  const std::string method = Config(*stored, "").text({"quant_method"});
  return fmt::format("quantization_config: weights stored in {} are planned in the strategy's precision",
                     method.empty() ? "few bits" : method);
}

// Returns the message for rotary positions on only a part of each head. The plan rotates complete heads, which takes
// more time.
std::string rotary_remark(const Config& text, const Model& m) {
  double part = text.real({"partial_rotary_factor", "rotary_pct"}, 1);
  if (const std::int64_t columns = text.count({"rotary_dim"}, 0); columns > 0 && m.head_dim > 0)
    part = static_cast<double>(columns) / static_cast<double>(m.head_dim);
  if (m.positions != Positions::rope || m.mla || m.compressed_attention || part >= 1) return "";
  return fmt::format("rotary positions: on {:.3g} % of each head, planned as on the whole", 100 * part);
}

// Returns the message for models in which some layers have no rotary positions: the plan rotates queries and keys in
// these layers too, and is right in all other costs.
std::string unrotated_remark(const Config& text) {
  const bool some = text.find({"no_rope_layers", "no_rope_layer_interval"}) != nullptr;
  return some ? "no_rope_layers: rotary positions are planned in every layer" : "";
}

// Returns the message for an activation function other than the one planned. The planned activation function takes the
// same memory, and the same time except for a few operations per element; but executing the plan would train a
// different model.
std::string activation_remark(const Config& text, const Model& m) {
  const std::string act = text.text({"hidden_act", "hidden_activation", "activation_function", "mlp_hidden_act"});
  const bool same =
      m.gated ? act == "silu" || act == "swish" || act == "swiglu" : act.find("gelu") == 0 || act == "quick_gelu";
  if (act.empty() || same) return "";
  return fmt::format("activation: {}, planned and executed as {}", act, m.gated ? "SwiGLU" : "GELU");
}

std::string taken_remark(const Config& text) {
  if (text.taken().empty()) return "";
  return fmt::format("not in the file, taken from the family's class in transformers: {}",
                     fmt::join(text.taken(), ", "));
}

}  // namespace

TextPart text_part(const json& whole) {
  // Files of Qwen's omni models have the text model within the object thinker_config.
  const json* thinker = object_in(whole, "thinker_config");
  const json& outer = thinker == nullptr ? whole : *thinker;
  for (const char* key : kTextKeys) {
    if (const json* object = object_in(outer, key)) return {object, key};
  }
  return {&whole, nullptr};
}

bool is_tied(const Config& text, const Config& whole) {
  return text.written(kTied) == nullptr && whole.written(kTied) != nullptr ? whole.flag(kTied, false)
                                                                           : text.flag(kTied, false);
}

std::vector<std::string> remarks_of(const Config& text, const Config& whole, const TextPart& part, const Model& m) {
  std::vector<std::string> list{other_parts_remark(whole, part, m),
                                window_remark(m),
                                quantization_remark(whole),
                                rotary_remark(text, m),
                                unrotated_remark(text),
                                activation_remark(text, m),
                                taken_remark(text)};
  std::erase(list, "");
  return list;
}

}  // namespace orrery
