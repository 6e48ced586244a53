// This file reads model.lora and model.frozen: adapters, and parts of a model that do not train.
#include <algorithm>

#include "models/base/names.h"
#include "models/load/reader.h"
#include "models/partition/layers_of_stages.h"
#include "models/spec/vision.h"

namespace orrery {
namespace {

constexpr SpecKey kLoraKeys[] = {
    {"rank", "rank of the adapters", "16", "", "required"},
    {"targets", "linear layers with adapters", "[qkv, out, mlp]", "one or a list of qkv | out | mlp", "all of them"},
    {"weights", "width of the frozen matrices: the precision's, or NF4 (QLoRA)", "nf4", "precision | nf4"},
};
constexpr std::string_view kTargets[] = {"qkv", "out", "mlp"};
constexpr std::string_view kFrozenWidths[] = {"precision", "nf4"};
// The largest accepted rank of a LoRA adapter, above any model's width; an adapter of such a rank would be no smaller
// than its layer.
constexpr std::int64_t kMostRank = 65536;

// Returns the words of a list in the spec; throws Error for a word that is not in the list `known`.
std::vector<std::string> words_of(const SpecSection& section, std::string_view key,
                                  std::span<const std::string_view> known) {
  std::vector<std::string> words;
  for (const SpecNode& item : section.find_words(key)) {
    convert(section.reader(), item, section.name(key), words.emplace_back());
    section.located(item, key, [&] {
      if (std::ranges::find(known, words.back()) == known.end())
        throw Error(unknown_name("part", words.back(), std::vector<std::string_view>(known.begin(), known.end())));
      return true;
    });
  }
  return words;
}

void read_lora(const SpecSection& model, Model& m) {
  const SpecNode* node = model.find("lora");
  const SpecSection map(model.reader(), node, "model.lora", kLoraKeys);
  if (node == nullptr) return;
  Lora lora;
  if (!map.take("rank", lora.rank, "required")) model.reader().fail(*node, "model.lora.rank", "missing");
  std::vector<std::string> targets = words_of(map, "targets", kTargets);
  if (map.find("targets") == nullptr) targets.assign(std::begin(kTargets), std::end(kTargets));
  const auto has = [&](std::string_view word) { return std::ranges::find(targets, word) != targets.end(); };
  lora.qkv = has("qkv");
  lora.out = has("out");
  lora.mlp = has("mlp");
  map.record("targets", fmt::format("{}", fmt::join(targets, ", ")), map.find("targets"), "default");
  std::string weights = "precision";
  map.take_word("weights", weights, kFrozenWidths);
  lora.nf4 = weights == "nf4";
  m.lora = lora;
}

bool any_trains(const Model& m, const std::vector<Parameter>& list) {
  return std::ranges::any_of(list, [&](const Parameter& p) { return !is_frozen(m, p.name); });
}

}  // namespace

void read_frozen(const SpecSection& model, Model& m) {
  read_lora(model, m);
  m.frozen = words_of(model, "frozen", kFrozenParts);
  if (model.find("frozen") != nullptr)
    model.record("frozen", fmt::format("{}", fmt::join(m.frozen, ", ")), model.find("frozen"), "default");
}

Broken frozen_rules(const Spec& spec) {
  const Model& m = spec.model;
  if (!has_frozen(m) || spec.generation) return {};
  if (m.lora && (m.lora->rank < 1 || m.lora->rank > kMostRank))
    return broken("model.lora.rank", "model.lora.rank: {} is not between 1 and {}", m.lora->rank, kMostRank);
  if (m.lora && !m.lora->qkv && !m.lora->out && !m.lora->mlp)
    return broken("model.lora.targets", "model.lora.targets: none is given; name some of qkv, out, mlp");
  for (const char* part : {"vision", "projector"}) {
    if (!m.vision && std::ranges::find(m.frozen, part) != m.frozen.end())
      return broken("model.frozen", "model.frozen: {}: samples have no images (sequence.images); leave it out", part);
  }
  const bool layers = any_trains(m, layer_parameters(m, 0));
  if (!layers && !vision_trains(m) && !any_trains(m, embedding_parameters(m, spec.sequence)) &&
      !any_trains(m, head_parameters(m)))
    return broken("model.frozen", "model.frozen: nothing is left that trains; leave a part out");
  if (spec.strategy.pipeline == 1) return {};
  // A plan with several stages sends gradients back as far as the first stage, so a model in which no layer trains is
  // rejected.
  if (!layers) return broken("model.frozen", "model.frozen: no layer trains; choose pipeline: 1");
  if (!trains_below(m, 0) && !spec.strategy.stage_layers.empty() && spec.strategy.stage_layers.front() == 0)
    return broken("stage_layers", "stage_layers: the first stage has nothing that trains; give it a layer");
  return {};
}

}  // namespace orrery
