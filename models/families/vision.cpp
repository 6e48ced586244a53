// This file reads the vision encoders of Qwen's vision-language models.
#include <algorithm>

#include <fmt/format.h>

#include "models/families/parts.h"

namespace orrery {
namespace {

using nlohmann::json;

// Names of the configuration classes of transformers: Qwen2VLVisionConfig, Qwen2_5_VLVisionConfig, Qwen3VLVisionConfig
// (and Qwen3VLMoeVisionConfig, which is alike). Properties of an encoder other than sizes have no keys; they come from
// the models' code (modeling_qwen*_vl.py).
constexpr std::string_view kQwen2 = "qwen2_vl", kQwen25 = "qwen2_5_vl", kQwen3 = "qwen3_vl", kQwen3Moe = "qwen3_vl_moe";

// Returns a size of the encoder. Values that no encoder has are rejected, so that products of sizes fit into 64 bits.
std::int64_t size(const Config& c, Keys keys, std::int64_t absent, std::int64_t least = 1) {
  constexpr std::int64_t kMost = 1'000'000;
  const std::int64_t value = c.count(keys, absent);
  if (value < least || value > kMost)
    c.fail(*keys.begin(), fmt::format("{} is not between {} and {}", value, least, kMost));
  return value;
}

// Returns the list of layer indices that a key of the file has, or `absent` if the file does not have the key.
std::vector<std::int64_t> layers_in(const Config& c, const char* key, std::vector<std::int64_t> absent) {
  const json* list = c.find({key});
  if (list == nullptr) return absent;
  const bool numbers =
      list->is_array() && std::ranges::all_of(*list, [](const json& item) { return item.is_number_integer(); });
  if (!numbers) c.fail(key, "a list of layers is needed");
  return list->get<std::vector<std::int64_t>>();
}

VisionEncoder common(const Config& c) {
  VisionEncoder v;
  v.rotary = true;
  v.heads = size(c, {"num_heads"}, 16);
  v.patches.channels = size(c, {"in_channels", "in_chans"}, 3);
  v.projector.merge = size(c, {"spatial_merge_size"}, 2);
  v.patches.frames = size(c, {"temporal_patch_size"}, 2);
  return v;
}

VisionEncoder qwen2(const Config& c) {
  VisionEncoder v = common(c);
  v.layers = size(c, {"depth"}, 32);
  v.hidden = size(c, {"embed_dim"}, 1280);
  v.feed_forward = v.hidden * size(c, {"mlp_ratio"}, 4);
  v.patches.side = size(c, {"patch_size"}, 14);
  v.patches.bias = false;
  return v;
}

VisionEncoder qwen2_5(const Config& c) {
  VisionEncoder v = common(c);
  v.layers = size(c, {"depth"}, 32);
  v.hidden = size(c, {"hidden_size"}, 1280);
  v.feed_forward = size(c, {"intermediate_size"}, 3420);
  v.patches.side = size(c, {"patch_size"}, 14);
  v.gated = true;
  v.norm = Norm::rmsnorm;
  v.patches.bias = false;
  const std::int64_t side = size(c, {"window_size"}, 112) / v.patches.side;
  v.window = side * side;
  v.full_layers = layers_in(c, "fullatt_block_indexes", {7, 15, 23, 31});
  return v;
}

VisionEncoder qwen3(const Config& c) {
  VisionEncoder v = common(c);
  v.layers = size(c, {"depth"}, 27);
  v.hidden = size(c, {"hidden_size"}, 1152);
  v.feed_forward = size(c, {"intermediate_size"}, 4304);
  v.patches.side = size(c, {"patch_size"}, 16);
  v.patches.positions = size(c, {"num_position_embeddings"}, 2304);
  v.projector.count = 1 + static_cast<std::int64_t>(layers_in(c, "deepstack_visual_indexes", {8, 16, 24}).size());
  return v;
}

}  // namespace

std::optional<VisionEncoder> read_encoder(const Config& whole) {
  const Config config = whole.part("vision_config");
  std::string type = config.text({"model_type"});
  if (type.empty()) type = whole.text({"model_type"});
  std::optional<VisionEncoder> v;
  if (type == kQwen2) v = qwen2(config);
  if (type == kQwen25) v = qwen2_5(config);
  if (type == kQwen3 || type == kQwen3Moe) v = qwen3(config);
  if (v) v->projector.width = v->merged();
  return v;
}

}  // namespace orrery
