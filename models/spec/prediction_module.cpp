#include "models/spec/prediction_module.h"

namespace orrery {

Model with_module(const Model& model) {
  Model m = model;
  const std::int64_t like = prediction_layer(model);
  if (!model.layer_kinds.empty()) {
    m.layer_kinds.clear();
    for (std::int64_t layer = 0; layer < model.layers; ++layer) m.layer_kinds.push_back(layer_kind(model, layer));
    m.layer_kinds.push_back(layer_kind(model, like));
  }
  if (m.moe && !m.moe->layers.empty() && has_experts(model, like)) m.moe->layers.push_back(model.layers);
  ++m.layers;
  return m;
}

Model module_alone(const Model& model) {
  Model m = model;
  const std::int64_t like = prediction_layer(model);
  m.layers = 1;
  if (!model.layer_kinds.empty()) m.layer_kinds = {layer_kind(model, like)};
  if (!has_window(model, like)) m.sliding_window.reset();
  if (!has_experts(model, like)) {
    m.moe.reset();
  } else if (m.moe) {
    m.moe->first_layer = m.moe->hash_layers = 0;
    m.moe->every = 1;
    m.moe->layers.clear();
  }
  return m;
}

}  // namespace orrery
