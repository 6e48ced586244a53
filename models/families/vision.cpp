// This file reads the vision encoders of Qwen's vision-language models.
#include <algorithm>

#include <fmt/format.h>

#include "models/families/parts.h"

namespace orrery {
namespace {

using nlohmann::json;

// Values of model_type for vision encoders that can be read. Their configuration classes in transformers are
// Qwen2VLVisionConfig, Qwen2_5_VLVisionConfig, Qwen3VLVisionConfig (and Qwen3VLMoeVisionConfig, which is alike).
// Properties of an encoder other than sizes have no keys; they come from the models' code (modeling_qwen*_vl.py).
constexpr std::string_view kQwen2Vision = "qwen2_vl", kQwen25 = "qwen2_5_vl", kQwen3Vision = "qwen3_vl",
                           kQwen3Moe = "qwen3_vl_moe";

// Returns a size of the encoder. Values that no encoder has are rejected, so that products of sizes fit into 64 bits.
std::int64_t size(const Config& c, Keys keys, std::int64_t absent, std::int64_t least = 1) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t value = c.count(keys, absent);
  if (value < least || value > kMost)
    c.fail(*keys.begin(), fmt::format("{} is not between {} and {}", value, least, kMost));
  return value;
}

// Returns the list of layer indices that a key of the file has, or `absent` if the file does not have the key. The
// indices must ascend, below `layers`.
std::vector<std::int64_t> layers_in(const Config& c, const char* key, std::vector<std::int64_t> absent,
                                    std::int64_t layers) {
  const json* list = c.find({key});
  if (list == nullptr) return absent;
  const bool numbers =
      list->is_array() && std::ranges::all_of(*list, [](const json& item) { return item.is_number_integer(); });
  if (!numbers) c.fail(key, "a list of layers is needed");
  auto found = list->get<std::vector<std::int64_t>>();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i] < (i == 0 ? 0 : found[i - 1] + 1) || found[i] >= layers)
      c.fail(key, fmt::format("layers that ascend, from 0 to {}, are needed", layers - 1));
  }
  return found;
}

// Default sizes of a vision encoder's configuration class, which hold if a config.json leaves them out.
struct Defaults {
  std::int64_t layers, hidden, feed_forward, patch;
};

// Reads the keys that all Qwen vision encoders have. hidden: the key of the encoder's width, which Qwen2-VL calls
// embed_dim.
VisionEncoder common(const Config& c, const Defaults& absent, const char* hidden) {
  VisionEncoder v;
  v.rotary = true;
  v.layers = size(c, {"depth"}, absent.layers);
  v.hidden = size(c, {hidden}, absent.hidden);
  v.heads = size(c, {"num_heads"}, 16);
  v.feed_forward = size(c, {"intermediate_size"}, absent.feed_forward);
  v.patches.side = size(c, {"patch_size"}, absent.patch);
  v.patches.channels = size(c, {"in_channels", "in_chans"}, 3);
  v.patches.frames = size(c, {"temporal_patch_size"}, 2);
  v.projector.merge = size(c, {"spatial_merge_size"}, 2);
  return v;
}

VisionEncoder qwen2(const Config& c) {
  VisionEncoder v = common(c, {32, 1280, 5120, 14}, "embed_dim");
  v.feed_forward = v.hidden * size(c, {"mlp_ratio"}, 4);
  v.patches.bias = false;
  return v;
}

VisionEncoder qwen2_5(const Config& c) {
  VisionEncoder v = common(c, {32, 1280, 3420, 14}, "hidden_size");
  v.gated = true;
  v.norm = Norm::rmsnorm;
  v.patches.bias = false;
  const std::int64_t pixels = size(c, {"window_size"}, 112), side = pixels / v.patches.side;
  if (side == 0) c.fail("window_size", fmt::format("{} is smaller than a patch of {}", pixels, v.patches.side));
  v.window = side * side;
  v.full_layers = layers_in(c, "fullatt_block_indexes", {7, 15, 23, 31}, v.layers);
  return v;
}

VisionEncoder qwen3(const Config& c) {
  VisionEncoder v = common(c, {27, 1152, 4304, 16}, "hidden_size");
  v.patches.positions = size(c, {"num_position_embeddings"}, 2304);
  const std::vector<std::int64_t> deep = layers_in(c, "deepstack_visual_indexes", {8, 16, 24}, v.layers);
  v.projector.count = 1 + static_cast<std::int64_t>(deep.size());
  return v;
}

}  // namespace

std::optional<VisionEncoder> read_encoder(const Config& whole, std::int64_t text_hidden) {
  const Config config = whole.part("vision_config");
  std::string type = config.text({"model_type"});
  if (type.empty()) type = whole.text({"model_type"});
  std::optional<VisionEncoder> v;
  if (type == kQwen2Vision) v = qwen2(config);
  if (type == kQwen25) v = qwen2_5(config);
  if (type == kQwen3Vision || type == kQwen3Moe) v = qwen3(config);
  if (!v) return v;
  // In the vision_config of Qwen2-VL, hidden_size is the text model's width.
  const std::int64_t out = config.count({type == kQwen2Vision ? "hidden_size" : "out_hidden_size"}, text_hidden);
  if (out != text_hidden)
    config.fail(type == kQwen2Vision ? "hidden_size" : "out_hidden_size",
                fmt::format("{} is not the text model's hidden_size: {}", out, text_hidden));
  v->projector.width = v->merged();
  return v;
}

}  // namespace orrery
