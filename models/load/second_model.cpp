// This file reads the sections `teacher`, `distill` and `dpo`: a frozen model that runs beside the one that trains.
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "models/load/aliases.h"
#include "models/load/open_spec.h"
#include "models/load/reader.h"

namespace orrery {
namespace {

constexpr SpecKey kDistillKeys[] = {
    {"temperature", "divisor of all logits in the divergence, which is multiplied by its square", "2"},
    {"divergence", "weight of the divergence from the teacher in the loss", "0.5"},
    {"cross_entropy", "weight of the cross-entropy with the data's tokens in the loss", "0.5"},
};
constexpr SpecKey kPreferenceKeys[] = {
    {"beta", "factor of the difference of log-probabilities: how close the policy stays to the reference", "0.1"},
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
    const SpecNode* teacher = top.find("teacher");
    if (teacher == nullptr)
      throw Error(fmt::format("{}: teacher: missing; a built-in name, a config.json or a map", top.reader().path));
    s.model = read_teacher(top.reader(), *teacher);
    map.take("temperature", s.temperature);
    map.take("divergence", s.divergence);
    map.take("cross_entropy", s.cross_entropy);
  } else if (workload == "dpo") {
    SecondModel& s = spec.second.emplace();
    s.role = SecondModel::Role::reference;
    const SpecSection map(top.reader(), top.find("dpo"), "dpo", kPreferenceKeys);
    map.take("beta", s.beta);
  }
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

Broken second_rules(const Spec& spec) {
  if (!spec.second) return {};
  const SecondModel& s = *spec.second;
  const std::tuple<const char*, double, bool> factors[] = {{"distill.temperature", s.temperature, false},
                                                           {"distill.divergence", s.divergence, true},
                                                           {"distill.cross_entropy", s.cross_entropy, true},
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
