#include "models/spec/second_model.h"

#include <algorithm>

#include "models/spec/spec.h"

namespace orrery {

std::string_view name_of(SecondModel::Role role) {
  return role == SecondModel::Role::teacher ? "teacher" : "reference";
}

Spec second_spec(const Spec& spec) {
  Spec own = spec;
  own.model = spec.second->model;
  own.strategy.recompute = {};
  own.strategy.offload = {};
  own.strategy.stage_layers.clear();
  return own;
}

// Returns the position in a weight's name of the word for the second model, which follows the layer's number if there
// is one ("layer 3 teacher attention.qkv.weight"); npos if the weight is not of the second model.
static std::size_t word_in(const Spec& spec, std::string_view parameter) {
  if (!spec.second) return std::string_view::npos;
  const std::string_view word = name_of(spec.second->role);
  const std::size_t at = parameter.find(word);
  const bool begins = at == 0 || (at != std::string_view::npos && parameter.starts_with("layer "));
  return begins && parameter.substr(at + word.size()).starts_with(" ") ? at : std::string_view::npos;
}

bool of_second_model(const Spec& spec, std::string_view parameter) {
  return word_in(spec, parameter) != std::string_view::npos;
}

const Model& model_of(const Spec& spec, std::string_view parameter) {
  return of_second_model(spec, parameter) ? spec.second->model : spec.model;
}

std::int64_t feature_of(const Spec& spec, std::int64_t layer, bool of_second) {
  if (!spec.second) return -1;
  const SecondModel::Features& f = spec.second->features;
  const std::vector<std::int64_t>& layers = of_second ? f.teacher : f.student;
  const auto at = std::find(layers.begin(), layers.end(), layer);
  return at == layers.end() ? -1 : at - layers.begin();
}

bool projects_features(const Spec& spec) {
  return spec.second && !spec.second->features.student.empty() && spec.second->model.hidden != spec.model.hidden;
}

std::string initial_name(const Spec& spec, const std::string& parameter) {
  const std::size_t at = word_in(spec, parameter);
  if (at == std::string_view::npos || spec.second->role != SecondModel::Role::reference) return parameter;
  return parameter.substr(0, at) + parameter.substr(at + name_of(spec.second->role).size() + 1);
}

}  // namespace orrery
