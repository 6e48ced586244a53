#include "sim/page/words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/load/load_spec.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

Spec spec_of_page(const std::string& strategy, const std::string& model = "gpt2") {
  return parse_spec(
      fmt::format(
          "{{model: {}, sequence: 1024, cluster: {{node: dgx-a100, nodes: 2}}, software: megatron-core, strategy: {}}}",
          model, strategy),
      "spec.yaml");
}

std::string words(const std::string& strategy, const std::string& model = "gpt2") {
  return fmt::format("{}", fmt::join(strategy_words(spec_of_page(strategy, model)), " "));
}

TEST(Words, AStrategyIsToldWithoutDegrees) {
  const std::string all = words("{tensor: 2, pipeline: 2, global_batch: 16, sharding: zero1, recompute: full}");
  for (const char* part :
       {"16 sequences of 1,024 tokens", "cut over 2 GPUs (tensor parallelism", "pipeline of 2 stages (schedule 1f1b)",
        "4 replicas", "optimizer's states are dealt to them (zero1)", "full recomputation", "Numbers are bf16",
        "megatron-core"})
    EXPECT_TRUE(has(all, part)) << part << "\n" << all;
  EXPECT_FALSE(has(words("{global_batch: 16}"), "pipeline of"));
  EXPECT_TRUE(has(words("{global_batch: 16, sharding: zero3}"), "gathered when needed"));
  EXPECT_TRUE(has(words("{global_batch: 16, context: 2}", "llama-3.1-8b"), "Every sequence is cut over 2 GPUs"));
}

TEST(Words, TheMachineNamesWhatItConsistsOf) {
  std::string all;
  for (const auto& row : machine_table(spec_of_page("{global_batch: 16}")).rows) all += row[0] + ": " + row[1] + '\n';
  for (const char* part : {"16 x NVIDIA A100 SXM4 80GB", "2 x dgx-a100, 8 GPUs each", "NVLink among 8 GPUs",
                           "8 x 200 Gbit/s a node, infiniband", "13 kW in all"})
    EXPECT_TRUE(has(all, part)) << part << "\n" << all;
}

TEST(Words, OnlyValuesThatNobodyGaveAreDefaults) {
  const Spec spec = spec_of_page("{tensor: 2, global_batch: 16}");
  std::string keys;
  for (const auto& row : deciding_defaults(spec).rows) keys += row[0] + '\n';
  EXPECT_TRUE(has(keys, "strategy.micro_batch\n"));
  EXPECT_FALSE(has(keys, "strategy.tensor\n"));
  EXPECT_FALSE(has(keys, "global_batch"));
  EXPECT_EQ(origins_table(spec, true).rows.size() + origins_table(spec, false).rows.size(), spec.origins.size());
}

TEST(Words, EveryKindOfTimeHasAMeaning) {
  for (int k = 0; k < kTimeKinds; ++k) EXPECT_FALSE(meaning_of(static_cast<TimeKind>(k)).empty());
  EXPECT_EQ(words_of("exposed_tensor"), "exposed tensor");
}

Spec taught_spec(const std::string& rest) {
  return parse_spec(fmt::format("{{model: llama-3.2-1b, sequence: 1024, cluster: {{node: dgx-h100, nodes: 1}}, "
                                "strategy: {{micro_batch: 2, global_batch: 16}}, {}}}",
                                rest),
                    "spec.yaml");
}

TEST(Words, ASecondModelIsTold) {
  const Spec taught = taught_spec("teacher: llama-3.1-8b, distill: {temperature: 2, cross_entropy: 0.5}");
  EXPECT_TRUE(has(title_words(taught), "llama-3.2-1b beside a frozen teacher (llama-3.1-8b) on 8 x"));
  const std::string all = fmt::format("{}", fmt::join(strategy_words(taught), " "));
  EXPECT_TRUE(has(all, "teacher (llama-3.1-8b) of 8.03 B parameters runs forward alone")) << all;
  EXPECT_TRUE(has(all, "at temperature 2 and 0.5 x cross-entropy")) << all;
  const Spec preferring = taught_spec("workload: dpo");
  EXPECT_TRUE(has(title_words(preferring), "beside a frozen reference on 8 x"));
  EXPECT_TRUE(has(fmt::format("{}", fmt::join(strategy_words(preferring), " ")), "(DPO, beta 0.1)"));
}

}  // namespace
}  // namespace orrery
