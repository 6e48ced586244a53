// This file reads the sections `teacher`, `distill` and `dpo`: a frozen model that runs beside the one that trains.
#include <algorithm>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "models/load/aliases.h"
#include "models/load/open_spec.h"
#include "models/load/reader.h"
#include "models/partition/layers_of_stages.h"

namespace orrery {
namespace {

constexpr SpecKey kDistillKeys[] = {
    {"temperature", "divisor of all logits in the divergence, which is multiplied by its square", "2"},
    {"divergence", "weight of the divergence from the teacher in the loss", "0.5"},
    {"cross_entropy", "weight of the cross-entropy with the data's tokens in the loss", "0.5"},
    {"offload", "the teacher's weights lie in host memory and are copied unit by unit (zero3, fsdp)", "true"},
    {"gpus", "GPUs of the teacher's own, behind those of the student; 0: it is on the student's", "8", "", "0"},
    {"strategy", "how the teacher is cut over GPUs of its own", "{tensor: 8}"},
    {"features", "pairs of hidden states of both models whose squared difference is part of the loss",
     "{student: [8, 16], teacher: [16, 32]}"},
};
constexpr SpecKey kFeatureKeys[] = {
    {"student", "hidden states of the student that are compared, each by the number of layers before it", "[8, 16]"},
    {"teacher", "the teacher's hidden states beside those, pair by pair", "[16, 32]"},
    {"weight", "weight in the loss of each pair's mean squared difference", "0.1"},
};
constexpr SpecKey kPreferenceKeys[] = {
    {"beta", "factor of the difference of log-probabilities: how close the policy stays to the reference", "0.1"},
    {"offload", "the reference's weights lie in host memory and are copied unit by unit (zero3, fsdp)", "true"},
    {"gpus", "GPUs of the reference's own, behind those of the policy; 0: it is on the policy's", "8", "", "0"},
    {"strategy", "how the reference is cut over GPUs of its own", "{tensor: 8}"},
};
constexpr SpecKey kOwnStrategyKeys[] = {
    {"tensor", "ranks that cut each layer's matrices; it divides strategy.tensor, or that divides it", "8"},
    {"sequence_parallel", "activations between matrix products are cut over tensor ranks", "true", "",
     "tensor > 1, if the stack does"},
    {"pipeline", "stages of the pipeline", "2"},
    {"stage_layers", "layers of each stage in model order", "[9, 8, 8, 7]", "", "the stack's rule"},
    {"expert", "ranks that share out the experts (expert parallelism)", "8"},
    {"expert_tensor", "ranks that cut each expert's matrices", "2", "", "1, or tensor where the stack does"},
    {"data", "copies of the model, which divide the samples of each micro-batch of all data ranks", "2"},
};
constexpr double kMostFactor = 1e6;  // the largest accepted temperature, weight or beta, above any in use

// Reads a teacher, whose keys are those of a model. Errors and origins say `teacher` where a model's say `model`.
Model read_teacher(SpecReader& reader, SpecNode node) {
  if (node.kind == SpecNode::Kind::scalar && !std::filesystem::exists(beside(reader.path, node.text)))
    node.text = canonical_model(node.text);
  const std::string_view own = "model", name = "teacher";
  SpecReader inner{reader.path, {}};
  try {
    Model model = read_model(inner, &node);
    for (Origin& o : inner.origins) {
      o.key.replace(0, own.size(), name);
      reader.origins.push_back(std::move(o));
    }
    return model;
  } catch (const Error& e) {
    std::string text = e.what();
    if (const std::size_t at = text.find(": model"); at != std::string::npos) text.replace(at + 2, own.size(), name);
    throw Error(text);
  }
}

// Returns the virtual stage of a layer, or of the final norm, whose number is that of the layers.
std::int64_t stage_of_layer(const std::vector<std::int64_t>& cut, std::int64_t number) {
  std::int64_t stage = 0, end = cut.front();
  while (number >= end && stage + 1 < std::ssize(cut)) end += cut[static_cast<std::size_t>(++stage)];
  return stage;
}

// Reads how many GPUs a second model has of its own. How it is cut over them is read once the strategy of the model
// that trains is known (read_own_strategy).
void read_own_gpus(const SpecSection& map, SecondModel& s) {
  const bool given = map.take("gpus", s.gpus);
  if (given && (s.gpus < 0 || s.gpus > kMostRanks))
    map.reader().fail(*map.find("gpus"), map.name("gpus"),
                      fmt::format("{} is not between 0 and {}", s.gpus, kMostRanks));
  const SpecNode* node = map.find("strategy");
  const SpecSection keys(map.reader(), node, map.name("strategy"), kOwnStrategyKeys);  // refuses unknown keys
  if (node != nullptr && s.gpus == 0)
    map.reader().fail(*node, map.name("strategy"), "it needs GPUs of its own; give their number as gpus beside it");
}

bool in_use(const Spec& spec, SecondModel::Role role) { return spec.second && spec.second->role == role; }

}  // namespace

void read_second(const SpecSection& top, std::string_view workload, Spec& spec) {
  for (const auto& [key, its] : {std::pair("teacher", "distill"), {"distill", "distill"}, {"dpo", "dpo"}}) {
    const SpecNode* node = top.find(key);
    if (node != nullptr && workload != its)
      top.reader().fail(*node, key, fmt::format("it goes with workload: {}", its));
  }
  if (workload == "distill") {
    SecondModel& s = spec.second.emplace();
    s.divergence = s.cross_entropy = 0.5;
    const SpecSection map(top.reader(), top.find("distill"), "distill", kDistillKeys);
    map.take("temperature", s.temperature);
    map.take("divergence", s.divergence);
    map.take("cross_entropy", s.cross_entropy);
    map.take("offload", s.offload);
    read_own_gpus(map, s);
    if (const SpecNode* pairs = map.find("features"); pairs != nullptr) {
      const SpecSection features(top.reader(), pairs, "distill.features", kFeatureKeys);
      features.take("student", s.features.student, "none");
      features.take("teacher", s.features.teacher, "none");
      features.take("weight", s.features.weight);
    }
    const SpecNode* teacher = top.find("teacher");
    if (teacher == nullptr)
      throw Error(fmt::format("{}: teacher: missing; a built-in name, a config.json or a map", top.reader().path));
    s.model = read_teacher(top.reader(), *teacher);
  } else if (workload == "dpo") {
    SecondModel& s = spec.second.emplace();
    s.role = SecondModel::Role::reference;
    const SpecSection map(top.reader(), top.find("dpo"), "dpo", kPreferenceKeys);
    map.take("beta", s.beta);
    map.take("offload", s.offload);
    read_own_gpus(map, s);
  }
}

void read_own_strategy(const SpecSection& top, Spec& spec) {
  if (!has_second_apart(spec)) return;
  SecondModel& second = *spec.second;
  const std::string_view section = second.role == SecondModel::Role::teacher ? "distill" : "dpo";
  const SpecSection map(top.reader(), top.find(section)->find("strategy"), fmt::format("{}.strategy", section),
                        kOwnStrategyKeys);
  const Software::Layout& habits = spec.software.layout;
  Strategy& s = second.strategy.emplace();
  map.take_count("tensor", s.tensor, kMostRanks);
  s.sequence_parallel = s.tensor > 1 && habits.sequence_parallel;
  map.take("sequence_parallel", s.sequence_parallel,
           s.tensor > 1 ? fmt::format("profile {}", spec.software.name) : "tensor > 1");
  map.take_count("pipeline", s.pipeline, kMostRanks);
  map.take("stage_layers", s.stage_layers,
           fmt::format("profile {}: {}", spec.software.name, name_in(kStageRules, habits.stage_rule)));
  map.take_count("expert", s.expert, kMostRanks);
  const Model& model = second.role == SecondModel::Role::teacher ? second.model : spec.model;
  const bool follows = habits.expert_tensor_is_tensor && model.moe;
  if (follows) s.expert_tensor = s.tensor;
  map.take_count("expert_tensor", s.expert_tensor, kMostRanks,
                 follows ? fmt::format("profile {}", spec.software.name) : "default");
  const std::int64_t inner = s.tensor * s.pipeline;
  if (inner <= kMostRanks) s.data = std::max<std::int64_t>(1, second.gpus / (inner * spec.strategy.context));
  map.take_count("data", s.data, kMostRanks, "gpus / (tensor * pipeline * context)");
}

// A second model has no dropout and no loss that balances experts, because it does not train, and no modules of
// multi-token prediction, whose predictions no loss reads.
void settle_second(Spec& spec) {
  if (!spec.second) return;
  Model& m = spec.second->model;
  if (in_use(spec, SecondModel::Role::reference)) m = spec.model;
  m.lora.reset();
  m.vision.reset();
  m.frozen.assign(std::begin(kFrozenParts), std::end(kFrozenParts));
  m.dropout = 0;
  m.mtp_layers = 0;
  if (m.moe) m.moe->aux_loss = 0;
}

// Returns whether one of two degrees divides the other.
static bool nest(std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; }

// Checks how a second model on ranks of its own is cut beside the model that trains: every rank of one side must have
// an even part of what a rank of the other side has.
Broken own_strategy_rules(const Spec& spec) {
  if (!has_second_apart(spec)) return {};
  const SecondModel& second = *spec.second;
  const Strategy &s = spec.strategy, &own = *second.strategy;
  const std::string_view section = second.role == SecondModel::Role::teacher ? "distill" : "dpo";
  const auto key = [&](std::string_view name) { return fmt::format("{}.strategy.{}", section, name); };
  const std::int64_t inner = own.tensor * own.pipeline;
  if (inner > kMostRanks || inner * s.context > kMostRanks || inner * s.context * own.data != second.gpus)
    return broken(fmt::format("{}.gpus", section),
                  "{}.gpus: {} is not its tensor * pipeline * data * strategy.context = {} * {} * {} * {}", section,
                  second.gpus, own.tensor, own.pipeline, own.data, s.context);
  if (!nest(own.tensor, s.tensor))
    return broken(key("tensor"), "{}: {} and strategy.tensor: {}: neither divides the other", key("tensor"), own.tensor,
                  s.tensor);
  if (!nest(own.data, s.data))
    return broken(key("data"), "{}: {} and strategy.data: {}: neither divides the other", key("data"), own.data,
                  s.data);
  const std::int64_t samples = s.micro_batch * s.data;
  if (samples % own.data != 0)
    return broken(key("data"),
                  "{}: {} does not divide the samples of a micro-batch, strategy.micro_batch * data: {} * {}",
                  key("data"), own.data, s.micro_batch, s.data);
  const std::int64_t rows = samples / std::max(s.data, own.data) * (spec.sequence / s.context);
  const std::int64_t shares = std::max<std::int64_t>(1, own.tensor / s.tensor);
  if (second.role == SecondModel::Role::reference && rows % shares != 0)
    return broken(key("tensor"), "{}: the {} ranks that send one policy rank its log-probabilities do not divide {}",
                  key("tensor"), shares, rows);
  return {};
}

// Checks pairs of hidden states, which lie one beside the other only if both layers that read them are on one virtual
// stage.
Broken feature_rules(const Spec& spec) {
  if (!spec.second) return {};
  const SecondModel::Features& f = spec.second->features;
  if (f.student.size() != f.teacher.size())
    return broken("distill.features", "distill.features: {} hidden states of the student beside {} of the teacher",
                  f.student.size(), f.teacher.size());
  if (f.student.empty()) return {};
  const Spec other = second_spec(spec);
  for (const auto& [key, whose, model] :
       {std::tuple("student", &f.student, &spec.model), std::tuple("teacher", &f.teacher, &other.model)}) {
    const std::string name = fmt::format("distill.features.{}", key);
    for (std::size_t i = 0; i < whose->size(); ++i) {
      const std::int64_t number = (*whose)[i];
      if (number < 0 || number > model->layers)
        return broken(name, "{}: {} is not between 0 and layers: {}", name, number, model->layers);
      if (std::find(whose->begin(), whose->begin() + static_cast<std::ptrdiff_t>(i), number) !=
          whose->begin() + static_cast<std::ptrdiff_t>(i))
        return broken(name, "{}: {} is there twice", name, number);
    }
  }
  const std::vector<std::int64_t> own = stage_layers(spec), beside = stage_layers(other);
  for (std::size_t i = 0; i < f.student.size(); ++i) {
    const std::int64_t a = stage_of_layer(own, f.student[i]), b = stage_of_layer(beside, f.teacher[i]);
    if (a != b)
      return broken("distill.features",
                    "distill.features: the student's hidden states {} are read on virtual stage {}, "
                    "the teacher's {} on {}; they must be on one stage",
                    f.student[i], a, f.teacher[i], b);
  }
  return {};
}

Broken second_rules(const Spec& spec) {
  if (!spec.second) return {};
  const SecondModel& s = *spec.second;
  const std::tuple<const char*, double, bool> factors[] = {{"distill.temperature", s.temperature, false},
                                                           {"distill.divergence", s.divergence, true},
                                                           {"distill.cross_entropy", s.cross_entropy, true},
                                                           {"distill.features.weight", s.features.weight, false},
                                                           {"dpo.beta", s.beta, false}};
  for (const auto& [key, value, zero] : factors) {
    if (!(value > 0 || (zero && value == 0)) || value > kMostFactor)
      return broken(key, "{}: {} is not {} 0 and at most {}", key, value, zero ? "at least" : "above", kMostFactor);
  }
  if (s.divergence + s.cross_entropy == 0)
    return broken("distill.divergence", "distill.divergence: it and cross_entropy are 0; there is no loss");
  if (s.model.vocab != spec.model.vocab)
    return broken("teacher.base", "teacher: its vocabulary has {} tokens, the student's {}; they must be the same",
                  s.model.vocab, spec.model.vocab);
  if (in_use(spec, SecondModel::Role::reference) && spec.strategy.micro_batch % 2 != 0)
    return broken("micro_batch", "strategy.micro_batch: {} samples are no pairs of a chosen and a rejected one",
                  spec.strategy.micro_batch);
  return {};
}

}  // namespace orrery
