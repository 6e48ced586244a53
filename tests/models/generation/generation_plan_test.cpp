#include "models/generation/generation_plan.h"

#include <set>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/plan/unfold.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Spec passes_spec(std::string_view generate, std::string_view strategy, std::int64_t gpus) {
  return parse_spec(fmt::format("{{model: llama-3.2-1b, workload: generate, generate: {}, cluster: {{node: dgx-h100, "
                                "nodes: 2}}, gpus: {}, software: vllm, strategy: {}}}",
                                generate, gpus, strategy),
                    "t.yaml");
}

double flops_of_plan(const Plan& plan) {
  double sum = 0;
  for (const RankClass& slot : plan.classes) {
    for (TaskId t = slot.begin; t < slot.end; ++t)
      sum += static_cast<double>(slot.multiplicity) * cost_of(plan.op_of(t).work, plan.element_bytes).flops;
  }
  return sum;
}

TEST(GenerationPlan, PassesCoverPromptsAndFurtherTokens) {
  const Spec spec = passes_spec("{batch: 2, input: 100, output: 4, chunk: 40}", "{}", 1);
  const std::vector<GenerationPass> passes = generation_passes(*spec.generation);
  ASSERT_EQ(passes.size(), 6U);
  std::int64_t cached = 0;
  for (const GenerationPass& pass : passes) {
    EXPECT_EQ(pass.cached, cached);
    cached += pass.tokens;
  }
  EXPECT_EQ(cached, 103);  // the last token is chosen, and in no cache
  EXPECT_FALSE(passes[1].chooses(*spec.generation));
  EXPECT_TRUE(passes[2].chooses(*spec.generation) && !passes[2].answers(*spec.generation));
  EXPECT_TRUE(passes[3].answers(*spec.generation));
}

// The joined plan has the work of its passes, each rank's weights and caches once, and the hash of its parts.
TEST(GenerationPlan, HasTheWorkOfItsPassesAndTheirStatesOnce) {
  const std::pair<std::string_view, std::int64_t> layouts[] = {{"{tensor: 2}", 2},
                                                               {"{pipeline: 2}", 2},
                                                               {"{pipeline: 4, micro_batch: 1}", 4},
                                                               {"{pipeline: 2, micro_batch: 8}", 2},
                                                               {"{pipeline: 2, virtual_stages: 2, micro_batch: 2}", 2},
                                                               {"{tensor: 2, pipeline: 2, data: 2}", 8}};
  for (const auto& [strategy, gpus] : layouts) {
    const Spec spec = passes_spec("{batch: 8, input: 64, output: 5, chunk: 40}", strategy, gpus);
    const Plan plan = make_executed_plan(spec);
    double sum = 0;
    for (const GenerationPass& pass : generation_passes(*spec.generation))
      sum += flops_of_plan(make_plan(spec_of_pass(spec, pass)));
    EXPECT_NEAR(flops_of_plan(plan) / sum, 1, 1e-9) << strategy;
    const Plan one = make_plan(spec);
    const auto states = [](const Plan& p) {
      std::int64_t count = 0;
      for (const Frame& f : p.frames) count += outlives_steps(p.blocks[f.block].role) ? 1 : 0;
      return count;
    };
    EXPECT_EQ(states(plan), states(one)) << strategy;
    EXPECT_EQ(plan.micro_batches, 6 * one.micro_batches);
    EXPECT_NE(plan_hash(plan), plan_hash(one));
    EXPECT_EQ(unfold(plan).classes.size(), static_cast<std::size_t>(gpus));
  }
}

// Every token that a later pass reads is sent by the last stage and received by the first, once.
TEST(GenerationPlan, TokensGoFromTheLastStageToTheFirst) {
  const Spec spec = passes_spec("{batch: 8, input: 64, output: 5, chunk: 40}", "{pipeline: 4, micro_batch: 2}", 4);
  const Plan plan = make_executed_plan(spec);
  std::set<std::int32_t> sent, received;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Frame& frame = plan.frames[plan.tasks[t].frame];
    const auto* transfer = std::get_if<Transfer>(&plan.op_of(t).work);
    if (transfer == nullptr || plan.blocks[frame.block].role != BlockRole::exchange) continue;
    EXPECT_EQ(plan.classes[plan.slot_of(t)].stage, transfer->send ? 3 : 0);
    EXPECT_TRUE((transfer->send ? sent : received).insert(frame.micro_batch).second);
    ASSERT_NE(plan.tasks[t].match, kNone);
    EXPECT_EQ(plan.members_of(plan.tasks[t].match).size(), 2U);
  }
  EXPECT_EQ(sent, received);
  EXPECT_EQ(sent.size(), 4U * 4);   // four passes before the last one choose for four micro-batches
  EXPECT_EQ(*sent.begin(), 1 * 4);  // the first chunk of the prompts chooses none
  EXPECT_EQ(*sent.rbegin(), 5 * 4 - 1);
}

}  // namespace
}  // namespace orrery
