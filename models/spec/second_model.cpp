#include "models/spec/second_model.h"

#include <algorithm>

#include "models/spec/spec.h"

namespace orrery {

std::string_view name_of(SecondModel::Role role) {
  return role == SecondModel::Role::teacher ? "teacher" : "reference";
}

// Returns the strategy of a second model on ranks of its own: its own degrees, and what it shares with the model that
// trains. The samples of one micro-batch of all data ranks are the same for both models, and each divides them evenly.
static Strategy strategy_apart(const Spec& spec) {
  const Strategy& s = spec.strategy;
  Strategy own = *spec.second->strategy;
  own.context = s.context;
  own.context_kind = s.context_kind;
  own.context_ring = s.context_ring;
  own.context_ulysses = s.context_ulysses;
  own.context_zigzag = s.context_zigzag;
  own.rank_order = s.rank_order;
  own.micro_batch = std::max<std::int64_t>(1, s.micro_batch * s.data / std::max<std::int64_t>(1, own.data));
  own.global_batch = s.global_batch;
  own.precision = s.precision;
  own.gradient_precision = s.gradient_precision;
  own.optimizer = s.optimizer;
  own.clip = 0;
  own.attention = s.attention;
  own.overlap = s.overlap;
  own.overlap.tensor = s.overlap.tensor && own.sequence_parallel;
  return own;
}

Spec second_spec(const Spec& spec) {
  Spec own = spec;
  own.model = spec.second->model;
  own.strategy.recompute = {};
  own.strategy.offload = {};
  own.strategy.stage_layers.clear();
  if (!has_second_apart(spec)) return own;
  own.strategy = strategy_apart(spec);
  own.gpus = own.strategy.gpus();
  own.second->strategy = spec.strategy;
  own.second->alone = true;
  return own;
}

bool has_second_beside(const Spec& spec) { return spec.second && spec.second->gpus == 0; }
bool has_second_apart(const Spec& spec) { return spec.second && spec.second->gpus > 0; }

Spec spec_of_rank(const Spec& job, std::int64_t rank) {
  return has_second_apart(job) && rank >= job.strategy.gpus() ? second_spec(job) : job;
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
