#include "models/spec/prediction_module.h"

namespace orrery {
namespace {

// Returns the model with these layers of it, in order, whose structures it states one by one.
Model with_layers(const Model& model, const std::vector<std::int64_t>& layers) {
  Model m = model;
  m.layers = std::ssize(layers);
  m.layer_kinds.clear();
  std::vector<std::int64_t> experts, full;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    const std::int64_t like = layers[static_cast<std::size_t>(i)];
    if (!model.layer_kinds.empty()) m.layer_kinds.push_back(layer_kind(model, like));
    if (has_experts(model, like)) experts.push_back(i);
    if (!has_window(model, like)) full.push_back(i);
  }
  if (experts.empty())
    m.moe.reset();
  else
    m.moe->layers = experts;
  if (m.sliding_window && std::ssize(full) == m.layers)
    m.sliding_window.reset();
  else if (m.sliding_window)
    m.sliding_window->every = 1, m.sliding_window->full_layers = full;
  return m;
}

}  // namespace

Model with_module(const Model& model) {
  std::vector<std::int64_t> layers;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) layers.push_back(layer);
  layers.push_back(prediction_layer(model));
  return with_layers(model, layers);
}

Model module_alone(const Model& model) { return with_layers(model, {prediction_layer(model)}); }

}  // namespace orrery
