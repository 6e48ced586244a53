// This file reads, plans and checks stage_replicas: pipeline stages with several ranks that share each micro-batch.
#include <algorithm>

#include "models/load/reader.h"
#include "models/partition/dapple.h"

namespace orrery {

// Clears the numbers of replicas if each stage has one replica, because such stages are ordinary stages.
static void forget_single(Strategy& s) {
  if (std::ranges::all_of(s.stage_replicas, [](std::int64_t r) { return r == 1; })) s.stage_replicas.clear();
}

// Reads strategy.stage_replicas (DAPPLE: the number of ranks of each stage); returns whether DAPPLE's planner must
// choose them.
bool read_replicas(const SpecSection& section, Strategy& s) {
  const SpecNode* node = section.find("stage_replicas");
  const bool planned = node != nullptr && node->kind == SpecNode::Kind::scalar && node->text == "planned";
  if (!planned) section.take("stage_replicas", s.stage_replicas, "one each");
  if (!planned && node != nullptr && std::ssize(s.stage_replicas) != s.pipeline)
    section.reader().fail(*node, "strategy.stage_replicas",
                          fmt::format("{} entries for pipeline: {}; give each stage a count, or say planned",
                                      s.stage_replicas.size(), s.pipeline));
  for (const std::int64_t r : s.stage_replicas) {
    if (r < 1 || r > kMostRanks)
      section.reader().fail(*node, "strategy.stage_replicas", fmt::format("{} is not between 1 and {}", r, kMostRanks));
  }
  forget_single(s);
  return planned;
}

// Sets the stages, their layers and their replicas by DAPPLE's planner, for the number of stages that the spec gives,
// or else for the best number.
void plan_replicas(const SpecSection& section, Spec& spec) {
  Strategy& s = spec.strategy;
  const SpecNode* node = section.find("stage_replicas");
  if (s.virtual_stages > 1 || !s.stage_layers.empty())
    section.reader().fail(*node, "strategy.stage_replicas",
                          "planned cuts the layers too; leave stage_layers and virtual_stages out");
  const std::int64_t stages = section.find("pipeline") != nullptr ? s.pipeline : 0;
  if (spec.model.layers < 1) return;  // the rules of models reject such a spec later
  if (stages > spec.model.layers)
    section.reader().fail(*section.find("pipeline"), "strategy.pipeline",
                          fmt::format("{} stages for {} layers; a stage has one at least", stages, spec.model.layers));
  // While costs are computed, the pipeline is set to one stage, because the ranks of the stages are not known yet.
  s.pipeline = 1;
  const StagePlan plan =
      section.located(*node, "stage_replicas", [&] { return plan_stages(pipeline_costs(spec), stages); });
  s.pipeline = std::ssize(plan.layers);
  s.stage_layers = plan.layers;
  s.stage_replicas = plan.replicas;
  const auto say = [&](std::string_view key, const std::string& value) {
    for (Origin& o : section.reader().origins) {
      if (o.key == key) o = {o.key, value, "DAPPLE's planner"};
    }
  };
  say("strategy.pipeline", to_text(s.pipeline));
  say("strategy.stage_layers", to_text(s.stage_layers));
  section.record("stage_replicas", to_text(s.stage_replicas), nullptr, "DAPPLE's planner");
  forget_single(s);
}

// Checks DAPPLE's replicas, which share the samples of a micro-batch and never split a sample.
Broken replica_rules(const Spec& spec) {
  const Strategy& s = spec.strategy;
  if (s.stage_replicas.empty()) return {};
  if (std::ssize(s.stage_replicas) != s.pipeline)
    return broken("stage_replicas", "stage_replicas: {} entries, but pipeline: {}", s.stage_replicas.size(),
                  s.pipeline);
  for (const std::int64_t r : s.stage_replicas) {
    if (r < 1 || s.micro_batch % r != 0)
      return broken("stage_replicas", "stage_replicas: {} does not divide micro_batch: {}, which replicas share", r,
                    s.micro_batch);
  }
  return {};
}

}  // namespace orrery
