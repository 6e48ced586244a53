#include "models/spec/vision.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace orrery {
namespace {

bool is_named_frozen(const Model& m, std::string_view part) {
  return m.lora || std::ranges::find(m.frozen, part) != m.frozen.end();
}

// Returns the encoder's layers as a model. If the text model freezes "vision", all parts of the result are frozen
// except the projectors, which are frozen only if the text model freezes "projector".
Model layers_of(const Model& m) {
  const VisionEncoder& v = *m.vision;
  Model layers;
  layers.name = m.name + " vision";
  layers.layers = v.layers;
  layers.hidden = v.hidden;
  layers.heads = layers.kv_heads = v.heads;
  layers.head_dim = v.hidden / v.heads;
  layers.feed_forward = v.feed_forward;
  layers.gated = v.gated;
  layers.norm = v.norm;
  layers.bias = v.bias;
  layers.positions = v.rotary ? Positions::rope : Positions::none;
  layers.bidirectional = true;
  layers.vision = v;
  if (v.window > 0) layers.sliding_window = SlidingWindow{v.window, 1, v.full_layers};
  for (const std::string_view part : kFrozenParts) {
    if (part == "projector" ? is_named_frozen(m, part) : is_named_frozen(m, "vision")) layers.frozen.emplace_back(part);
  }
  return layers;
}

// Returns the number of pairs of patches of an image that attend to each other in one head, over all layers.
double attended_patches(const VisionEncoder& v, double patches) {
  const auto full = v.window == 0 ? v.layers : static_cast<std::int64_t>(v.full_layers.size());
  const double seen = std::min(static_cast<double>(v.window), patches);
  return patches * (static_cast<double>(full) * patches + static_cast<double>(v.layers - full) * seen);
}

double real_elements(const Parameter& p) { return static_cast<double>(p.out * p.in); }

// Returns the number of rows (patches, or joined patches) of one image that are multiplied with a parameter; 0 for
// vectors and for positions, which are only added.
double rows_met(const VisionEncoder& v, const Parameter& p, double patches) {
  if (p.in == 1 || p.name == "embedding.position.weight") return 0;
  return p.name.starts_with("projector") ? patches / static_cast<double>(v.projector.merge * v.projector.merge)
                                         : patches;
}

}  // namespace

std::int64_t image_tokens(const Spec& spec) {
  if (!spec.images) return 0;
  return spec.images->count * spec.images->patches /
         (spec.model.vision->projector.merge * spec.model.vision->projector.merge);
}

Spec encoder_spec(const Spec& spec) {
  Spec own = spec;
  own.model = layers_of(spec.model);
  own.sequence = spec.images->patches;
  own.strategy.micro_batch *= spec.images->count;
  own.strategy.sequence_parallel = false;
  own.documents.reset();
  return own;
}

std::string broken_encoder_cut(const VisionEncoder& v, std::int64_t tensor) {
  const std::pair<const char*, std::int64_t> widths[] = {
      {"heads", v.heads}, {"feed_forward", v.feed_forward}, {"projector", v.projector.width}};
  for (const auto& [key, value] : widths) {
    if (value % tensor != 0)
      return fmt::format("strategy.tensor: {} does not divide model.vision.{}: {}", tensor, key, value);
  }
  return "";
}

std::vector<Parameter> vision_parameters(const Model& m) {
  if (!m.vision) return {};
  const VisionEncoder& v = *m.vision;
  std::vector<Parameter> list{{"embedding.patch.weight", v.hidden, v.patches.pixels()}};
  if (v.patches.bias) list.push_back({"embedding.patch.bias", v.hidden});
  if (v.patches.positions > 0) list.push_back({"embedding.position.weight", v.patches.positions, v.hidden});
  const Model layers = layers_of(m);
  for (std::int64_t i = 0; i < v.layers; ++i) {
    const std::vector<Parameter> of_layer = layer_parameters(layers, i);
    list.insert(list.end(), of_layer.begin(), of_layer.end());
  }
  for (std::int64_t p = 0; p < v.projector.count; ++p) {
    const std::int64_t scaled = p == 0 ? v.hidden : v.merged();
    list.push_back({"projector.scale.weight", scaled});
    if (v.norm == Norm::layernorm) list.push_back({"projector.scale.bias", scaled});
    list.push_back({"projector.up.weight", v.projector.width, v.merged(), Partition::column});
    list.push_back({"projector.down.weight", m.hidden, v.projector.width, Partition::row});
    if (!v.bias) continue;
    list.push_back({"projector.up.bias", v.projector.width, 1, Partition::column});
    list.push_back({"projector.down.bias", m.hidden});
  }
  return list;
}

std::int64_t vision_parameter_count(const Model& m) {
  std::int64_t sum = 0;
  for (const Parameter& p : vision_parameters(m)) sum += elements(p);
  return sum;
}

double encoder_products(const Spec& spec) {
  const VisionEncoder& v = *spec.model.vision;
  const auto patches = static_cast<double>(spec.images->patches);
  double products = 2 * static_cast<double>(v.hidden) * attended_patches(v, patches);
  for (const Parameter& p : vision_parameters(spec.model)) products += rows_met(v, p, patches) * real_elements(p);
  return static_cast<double>(spec.images->count) * products;
}

double vision_flops(const Spec& spec) {
  if (!spec.images) return 0;
  const VisionEncoder& v = *spec.model.vision;
  const Model layers = layers_of(spec.model);
  const auto patches = static_cast<double>(spec.images->patches);
  double products = 0;
  // whether an earlier weight trains, so that backward computes the gradient of this weight's input
  bool below = false;
  for (const Parameter& p : vision_parameters(spec.model)) {
    const bool trains = !is_frozen(layers, p.name);
    products += (1.0 + (trains ? 1 : 0) + (below ? 1 : 0)) * rows_met(v, p, patches) * real_elements(p);
    below = below || trains;
  }
  const double scores = (is_frozen(layers, "attention.qkv.weight") ? 1.0 : 3.0) * 2 * static_cast<double>(v.hidden) *
                        attended_patches(v, patches);
  const auto images = static_cast<double>(spec.images->count * spec.strategy.global_batch);
  return 2 * images * (products + scores);
}

bool vision_trains(const Model& m) {
  return m.vision && (!is_named_frozen(m, "vision") || !is_named_frozen(m, "projector"));
}

}  // namespace orrery
