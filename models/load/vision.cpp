// This file reads a model's vision encoder (model.vision) and the images of a sample (sequence.images).
#include "models/spec/vision.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "models/load/open_spec.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kVisionKeys[] = {
    {"layers", "layers of the encoder", "27", "", "required"},
    {"hidden", "width of its hidden states", "1152", "", "required"},
    {"heads", "its attention heads", "16", "", "required"},
    {"feed_forward", "width of its MLPs", "4304", "", "required"},
    {"gated", "MLPs of three matrices instead of two (Qwen2.5-VL)", "true"},
    {"norm", "normalization", "rmsnorm", "rmsnorm | layernorm", "layernorm"},
    {"bias", "biases on its linear layers and projectors", "true"},
    {"patch_bias", "a bias on the product that embeds patches", "false"},
    {"rotary", "queries and keys are rotated", "true"},
    {"positions", "rows of a learned position table; 0: none", "2304"},
    {"patch", "side of a patch, pixels", "16"},
    {"frames", "frames of a patch (video)", "2"},
    {"channels", "colours of a pixel", "3"},
    {"window", "patches that attend to each other, except in full_layers; 0: all", "64"},
    {"full_layers", "layers of the encoder that attend to all patches", "[7, 15, 23, 31]", "", "none"},
    {"merge", "side of the squares of patches that become one token", "2"},
    {"projector", "width between the two products of a projector", "4608", "", "hidden * merge * merge"},
    {"projectors", "projectors; those beyond the first read earlier layers (Qwen3-VL)", "4"},
};
constexpr SpecKey kImageKeys[] = {
    {"count", "images of a sample", "2"},
    {"patches", "patches of an image", "4096"},
};
constexpr std::string_view kVisionNorms[] = {"rmsnorm", "layernorm"};

constexpr std::int64_t kMostPatches = 10'000'000;

Broken count_rule(const char* key, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value >= least && value <= most) return {};
  return broken(key, "{}: {} is not between {} and {}", key, value, least, most);
}

Broken size_rules(const VisionEncoder& v) {
  constexpr std::int64_t kWidest = 1'000'000;
  const struct {
    const char* key;
    std::int64_t value, least, most;
  } rules[] = {{"model.vision.layers", v.layers, 1, 1000},
               {"model.vision.hidden", v.hidden, 1, kWidest},
               {"model.vision.heads", v.heads, 1, 10'000},
               {"model.vision.feed_forward", v.feed_forward, 1, kWidest},
               {"model.vision.positions", v.patches.positions, 0, kMostPatches},
               {"model.vision.patch", v.patches.side, 1, 1000},
               {"model.vision.frames", v.patches.frames, 1, 1000},
               {"model.vision.channels", v.patches.channels, 1, 1000},
               {"model.vision.window", v.window, 0, kMostPatches},
               {"model.vision.merge", v.projector.merge, 1, 64},
               {"model.vision.projectors", v.projector.count, 1, v.layers}};
  for (const auto& rule : rules) {
    if (Broken b = count_rule(rule.key, rule.value, rule.least, rule.most); !b.what.empty()) return b;
  }
  if (v.hidden % v.heads != 0)
    return broken("model.vision.heads", "model.vision.heads: {} does not divide hidden: {}", v.heads, v.hidden);
  constexpr std::int64_t kMostWeights = 1'000'000'000'000;  // more elements than a matrix of any encoder has
  if (v.patches.pixels() > kMostWeights / v.hidden)
    return broken("model.vision.patch", "model.vision.patch: {} numbers of a patch, and {} columns: too many weights",
                  v.patches.pixels(), v.hidden);
  if (std::ranges::adjacent_find(v.full_layers, std::ranges::greater_equal()) != v.full_layers.end())
    return broken("model.vision.full_layers", "model.vision.full_layers: they must ascend");
  for (const std::int64_t layer : v.full_layers) {
    if (layer < 0 || layer >= v.layers)
      return broken("model.vision.full_layers", "model.vision.full_layers: {} is not between 0 and {}", layer,
                    v.layers - 1);
  }
  return {};
}

void read_patches(const SpecSection& section, Patches& patches, std::string_view otherwise) {
  section.take("patch_bias", patches.bias, otherwise);
  section.take("positions", patches.positions, otherwise);
  section.take("patch", patches.side, otherwise);
  section.take("frames", patches.frames, otherwise);
  section.take("channels", patches.channels, otherwise);
}

}  // namespace

void read_vision(SpecReader& reader, const SpecNode* node, Model& m, std::string_view otherwise) {
  if (node == nullptr && !m.vision) return;
  const bool based = m.vision.has_value();
  VisionEncoder v = m.vision.value_or(VisionEncoder{});
  const SpecSection section(reader, node, "model.vision", kVisionKeys);
  const auto size = [&](std::string_view key, std::int64_t& value) {
    if (!section.take(key, value, otherwise) && !based) reader.fail(*node, section.name(key), "missing");
  };
  size("layers", v.layers);
  size("hidden", v.hidden);
  size("heads", v.heads);
  size("feed_forward", v.feed_forward);
  section.take("gated", v.gated, otherwise);
  std::string norm(v.norm == Norm::rmsnorm ? kVisionNorms[0] : kVisionNorms[1]);
  section.take_word("norm", norm, kVisionNorms, otherwise);
  v.norm = norm == kVisionNorms[0] ? Norm::rmsnorm : Norm::layernorm;
  section.take("bias", v.bias, otherwise);
  section.take("rotary", v.rotary, otherwise);
  read_patches(section, v.patches, otherwise);
  section.take("window", v.window, otherwise);
  section.take("full_layers", v.full_layers, otherwise);
  section.take("merge", v.projector.merge, otherwise);
  section.take("projectors", v.projector.count, otherwise);
  const auto refuse = [&](const Broken& b) {
    if (!b.what.empty())
      throw Error(fmt::format("{}: {}", node == nullptr ? reader.path : reader.where(*node), b.what));
  };
  refuse(size_rules(v));  // these limits are checked before sizes are multiplied, because a product could overflow
  const bool wider = !based || section.find("hidden") != nullptr || section.find("merge") != nullptr;
  if (wider) v.projector.width = v.merged();
  section.take("projector", v.projector.width, wider ? "hidden * merge * merge" : otherwise);
  refuse(count_rule("model.vision.projector", v.projector.width, 1, kMostPatches));
  m.vision = v;
}

void read_images(const SpecSection& sequence, Spec& spec) {
  const SpecNode* node = sequence.find("images");
  if (node == nullptr) return;
  const SpecSection map(sequence.reader(), node, "sequence.images", kImageKeys, "count");
  Images& images = spec.images.emplace();
  map.take("count", images.count);
  map.take("patches", images.patches);
}

void settle_images(Spec& spec) {
  Model& m = spec.model;
  if (spec.images || !m.vision) return;
  m.remarks.push_back(
      fmt::format("the vision part is left out: parameters, time and memory are those of the text model; sequence: "
                  "{{length: {}, images: {{count: 1, patches: 1024}}}} adds its encoder of {:.2f} G parameters",
                  spec.sequence, static_cast<double>(vision_parameter_count(m)) / 1e9));
  m.vision.reset();
}

Broken image_rules(const Spec& spec) {
  if (!spec.images) return {};
  const Images& images = *spec.images;
  if (!spec.model.vision)
    return broken("sequence.images", "sequence.images: the model has no encoder for them; give model.vision");
  const VisionEncoder& v = *spec.model.vision;
  if (Broken b = count_rule("sequence.images.count", images.count, 1, kMostPatches); !b.what.empty()) return b;
  if (Broken b = count_rule("sequence.images.patches", images.patches, 1, kMostPatches); !b.what.empty()) return b;
  if (images.patches % (v.projector.merge * v.projector.merge) != 0)
    return broken("sequence.images.patches", "sequence.images.patches: {} is not a multiple of merge * merge: {}",
                  images.patches, v.projector.merge * v.projector.merge);
  if (image_tokens(spec) > spec.sequence)
    return broken("sequence.images", "sequence.images: they are {} tokens, the sample has {}", image_tokens(spec),
                  spec.sequence);
  const std::string cut = broken_encoder_cut(v, spec.strategy.tensor);
  return cut.empty() ? Broken{} : Broken{"tensor", cut};
}

}  // namespace orrery
