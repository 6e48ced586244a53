// This file reads the spec's sections `workload` and `generate`: the generation of text in place of a training step.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "models/load/open_spec.h"
#include "models/load/reader.h"
#include "models/spec/generation.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

constexpr SpecKey kGenerateKeys[] = {
    {"batch", "sequences that are generated together, over all data ranks", "64"},
    {"input", "tokens of a prompt", "2048", "", "sequence"},
    {"output", "tokens that are generated after each prompt", "256"},
    {"chunk", "most tokens of a prompt that one pass computes; 0: the whole prompt", "8192"},
    {"kv_precision", "precision of the cached keys and values", "fp8", "fp32 | fp16 | bf16 | fp8 | nvfp4 | int8 | int4",
     "that of activations"},
    {"kv_block", "tokens of a block of the cache", "16"},
    {"drafts", "tokens that the model's module of multi-token prediction proposes for each pass to check", "3"},
    {"acceptance", "probability that the model agrees to a proposed token if it agreed to those before", "0.7"},
    {"memory_fraction", "part of a GPU's memory that weights, cache and working memory may take", "0.9"},
};
constexpr std::string_view kKept[] = {"fp32", "fp16", "bf16", "fp8", "nvfp4", "int8", "int4"};
constexpr std::string_view kWorkloads[] = {"train", "generate", "distill", "dpo"};

constexpr std::int64_t kMostTokens = 100'000'000;

bool is_said(const Spec& spec, std::string_view key) {
  return std::ranges::any_of(spec.origins, [&](const Origin& o) { return o.key == key && is_given(o); });
}

// Returns the workload of which the spec has a section, if it does not name the workload itself.
std::string workload_of_sections(const SpecSection& top) {
  for (const std::string_view section : {"generate", "distill", "dpo"}) {
    if (top.find(section) != nullptr) return std::string(section);
  }
  return top.find("teacher") != nullptr ? "distill" : "train";
}

}  // namespace

bool states_micro_batch(const Spec& spec) { return is_said(spec, "strategy.micro_batch"); }

void read_workload(const SpecSection& top, Spec& spec) {
  std::string workload = workload_of_sections(top);
  const bool by_teacher = workload == "distill" && top.find("distill") == nullptr;
  const std::string otherwise =
      workload == "train" ? "default" : fmt::format("{} is given", by_teacher ? "teacher" : workload.c_str());
  top.take_word("workload", workload, kWorkloads, otherwise);
  const SpecNode* node = top.find("generate");
  if (workload != "generate") {
    if (node != nullptr) top.reader().fail(*node, "generate", "it goes with workload: generate");
    read_second(top, workload, spec);
    return;
  }
  read_second(top, workload, spec);
  Generation& g = spec.generation.emplace();
  g.input = spec.sequence;
  const SpecSection map(top.reader(), node, "generate", kGenerateKeys);
  map.take_count("batch", g.batch, kMostTokens);
  if (!map.take("input", g.input, "sequence") && spec.sequence == 0)
    throw Error(fmt::format("{}: generate.input: missing; tokens of a prompt", top.reader().path));
  map.take("output", g.output);
  map.take("chunk", g.chunk);
  std::string kept(name_of(g.kv_precision));
  map.take_word("kv_precision", kept, kKept, "that of activations");
  g.kv_precision = find_precision(kept);
  map.take("kv_block", g.kv_block);
  map.take("drafts", g.drafts);
  map.take("acceptance", g.acceptance);
  map.take("memory_fraction", g.memory_fraction);
}

// The sequences pass through a pipeline in as many micro-batches as there are stages, or in the most below that which
// divide the sequences, since all micro-batches of a plan have one size.
void set_batch(Spec& spec, std::int64_t batch) {
  Strategy& s = spec.strategy;
  const std::int64_t own = batch / s.data;
  spec.generation->batch = s.global_batch = batch;
  if (states_micro_batch(spec)) return;
  std::int64_t parts = std::clamp<std::int64_t>(own, 1, s.pipeline);
  while (own % parts != 0) --parts;
  s.micro_batch = own / parts;
}

// Sets what follows from text generation: the model does not train, so all weights are frozen and have no gradients or
// optimizer states.
void settle_generation(Spec& spec) {
  if (!spec.generation) return;
  Generation& g = *spec.generation;
  Model& m = spec.model;
  Strategy& s = spec.strategy;
  spec.sequence = g.chunk > 0 ? std::min(g.chunk, g.input) : g.input;
  m.frozen.assign(std::begin(kFrozenParts), std::end(kFrozenParts));
  m.dropout = 0;
  g.modules = std::exchange(m.mtp_layers, 0);
  s.clip = 0;
  s.sequence_parallel = s.sequence_parallel && is_said(spec, "strategy.sequence_parallel");
  // In text generation, each rank of a tensor group has all tokens, and the group's ranks together hold all experts.
  if (m.moe && s.tensor > 1 && !is_said(spec, "strategy.expert_tensor"))
    s.expert_tensor = std::max<std::int64_t>(1, s.tensor / s.expert);
  if (!is_said(spec, "software.launch_us")) {
    const double stated_us = spec.software.host.collective_launch_us;
    take_launch_time_on(spec.cluster.gpu.compute_capability, spec.software);
    if (is_said(spec, "software.collective_launch_us")) spec.software.host.collective_launch_us = stated_us;
  }
  const std::int64_t stated_batch = s.global_batch;
  set_batch(spec, g.batch);
  if (is_said(spec, "strategy.global_batch")) s.global_batch = stated_batch;
  if (!is_said(spec, "generate.kv_precision")) {
    g.kv_precision = is_eight_bit(s.precision) ? Precision::bf16 : s.precision;
  }
  for (Origin& o : spec.origins) {
    if (o.key == "strategy.micro_batch" && !is_given(o))
      o.value = fmt::format("{}", s.micro_batch), o.from = "generate.batch";
    if (o.key == "strategy.global_batch" && !is_given(o))
      o.value = fmt::format("{}", g.batch), o.from = "generate.batch";
    if (o.key == "software.launch_us" && !is_given(o)) o.value = fmt::format("{}", spec.software.host.launch_us);
    if (o.key == "software.collective_launch_us" && !is_given(o))
      o.value = fmt::format("{}", spec.software.host.collective_launch_us);
    if (o.key == "strategy.expert_tensor" && !is_given(o)) o.value = fmt::format("{}", s.expert_tensor);
    if (o.key == "generate.kv_precision" && !is_given(o)) o.value = name_of(g.kv_precision);
  }
}

// Proposed tokens need a module that proposes them, and how likely they are to be accepted.
static Broken draft_rules(const Spec& spec) {
  constexpr std::int64_t kMostDrafts = 64;
  const Generation& g = *spec.generation;
  if (g.drafts < 0 || g.drafts > kMostDrafts)
    return broken("generate.drafts", "generate.drafts: {} is not between 0 and {}", g.drafts, kMostDrafts);
  if (!(g.acceptance >= 0 && g.acceptance <= 1))
    return broken("generate.acceptance", "generate.acceptance: {} is not between 0 and 1", g.acceptance);
  if (g.drafts > 0 && !is_said(spec, "generate.acceptance"))
    return broken("generate.drafts",
                  "generate.drafts: {}: generate.acceptance is missing, how likely the model is to agree to a token",
                  g.drafts);
  if (g.drafts > 0 && g.modules == 0)
    return broken("generate.drafts",
                  "generate.drafts: {} has no module of multi-token prediction (model.mtp_layers) to propose tokens",
                  spec.model.name);
  return {};
}

Broken generation_rules(const Spec& spec) {
  if (!spec.generation) return {};
  const Generation& g = *spec.generation;
  const Strategy& s = spec.strategy;
  for (const auto& [key, value, least] : {std::tuple("input", g.input, 1), std::tuple("output", g.output, 1),
                                          std::tuple("chunk", g.chunk, 0), std::tuple("kv_block", g.kv_block, 1)}) {
    if (value < least || value > kMostTokens)
      return broken(fmt::format("generate.{}", key), "generate.{}: {} is not between {} and {}", key, value, least,
                    kMostTokens);
  }
  if (!(g.memory_fraction > 0 && g.memory_fraction <= 1))
    return broken("generate.memory_fraction", "generate.memory_fraction: {} is not above 0 and at most 1",
                  g.memory_fraction);
  for (const Origin& o : spec.origins) {
    if (o.key == "sequence" && is_given(o) && o.value != fmt::format("{}", g.input))
      return broken("sequence", "sequence: {} is not generate.input: {}; leave it out", o.value, g.input);
  }
  if (g.batch % s.data != 0)
    return broken("generate.batch",
                  "generate.batch: {} is not a multiple of strategy.data: {}; set gpus, strategy.tensor or the batch",
                  g.batch, s.data);
  if (s.global_batch != g.batch)
    return broken("global_batch", "strategy.global_batch: {} is not generate.batch: {}; leave it out", s.global_batch,
                  g.batch);
  if (spec.model.moe && s.tensor > 1 && s.expert * s.expert_tensor != s.tensor)
    return broken("expert",
                  "strategy.expert: {} x expert_tensor: {} is not tensor: {}, whose ranks have the same tokens",
                  s.expert, s.expert_tensor, s.tensor);
  return draft_rules(spec);
}

}  // namespace orrery
