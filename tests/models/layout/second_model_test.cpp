// A frozen model beside the one that trains, in plans: its work, its memory and the buffers of the loss.
#include "models/layout/second_model.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/layout/placement.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "models/spec/sharding.h"

namespace orrery {
namespace {

Spec second_case(std::string_view sections, std::string_view strategy) {
  return parse_spec(
      fmt::format("{{{}sequence: 512, {}, cluster: {{node: dgx-h100, nodes: 1}}, gpus: 4, software: orrery, strategy: "
                  "{}}}",
                  sections.starts_with("model:") ? "" : "model: llama-3.2-1b, ", sections, strategy),
      "t.yaml");
}

constexpr const char* kSecondLayouts[] = {"{data: 4, global_batch: 8}",
                                          "{tensor: 4, global_batch: 8}",
                                          "{tensor: 2, pipeline: 2, global_batch: 8}",
                                          "{data: 4, sharding: zero3, global_batch: 8}",
                                          "{data: 2, pipeline: 2, sharding: fsdp, global_batch: 8}",
                                          "{pipeline: 2, virtual_stages: 2, data: 2, global_batch: 8}",
                                          "{context: 2, tensor: 2, global_batch: 8}"};

// The floating-point operations of all ranks in products with weights, of the second model or of the one that trains.
double products_of_model(const Plan& plan, bool second) {
  double sum = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* g = std::get_if<Gemm>(&plan.op_of(t).work);
    if (g == nullptr || g->heads > 0 || plan.blocks[plan.frames[plan.tasks[t].frame].block].second != second) continue;
    sum += cost_of(*g, 2).flops * static_cast<double>(plan.classes[plan.slot_of(t)].multiplicity);
  }
  return sum;
}

// The elements of the matrices that every token is multiplied with.
double matrices_met(const Model& m) {
  double sum = static_cast<double>(m.vocab * m.hidden);
  for (std::int64_t i = 0; i < m.layers; ++i) {
    for (const Parameter& p : layer_parameters(m, i)) sum += p.in > 1 ? static_cast<double>(p.out * p.in) : 0;
  }
  return sum;
}

double second_elements(const Model& m, std::int64_t sequence) {
  return static_cast<double>(parameter_count(m, sequence));
}

TEST(SecondModelPlan, HasAThirdOfTheWorkOfTrainingForEachWeight) {
  for (const char* layout : kSecondLayouts) {
    const Spec spec = second_case("teacher: llama-3.2-3b", layout);
    const Plan plan = make_plan(spec);
    const auto tokens = static_cast<double>(spec.strategy.global_batch * spec.sequence);
    EXPECT_DOUBLE_EQ(products_of_model(plan, false), 6 * tokens * matrices_met(spec.model)) << layout;
    EXPECT_DOUBLE_EQ(products_of_model(plan, true), 2 * tokens * matrices_met(spec.second->model)) << layout;
  }
}

// The floating-point operations of all ranks in some kind of work, of the second model or of the one that trains.
template <class Work>
double work_of_model(const Plan& plan, bool second) {
  double sum = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* work = std::get_if<Work>(&plan.op_of(t).work);
    if (work == nullptr || plan.blocks[plan.frames[plan.tasks[t].frame].block].second != second) continue;
    sum += cost_of(*work, 2).flops * static_cast<double>(plan.classes[plan.slot_of(t)].multiplicity);
  }
  return sum;
}

// Both models have experts, and every token meets as many of them as it chooses.
TEST(SecondModelPlan, HasAThirdOfTheWorkOfExpertsToo) {
  const Spec spec = second_case(
      "model: {base: llama-3.2-1b, moe: {experts: 8, top_k: 2, feed_forward: 512}}, teacher: {base: llama-3.2-3b, moe: "
      "{experts: 16, top_k: 4, feed_forward: 256, first_layer: 8}}",
      "{data: 4, expert: 4, sharding: zero3, global_batch: 8}");
  const Plan plan = make_plan(spec);
  const auto of_experts = [&](const Model& m) {
    return static_cast<double>(spec.strategy.global_batch * spec.sequence * m.moe->top_k * 3 * m.hidden *
                               m.moe->feed_forward * experts_before(m, m.layers));
  };
  EXPECT_DOUBLE_EQ(work_of_model<GroupedGemm>(plan, false), 6 * of_experts(spec.model));
  EXPECT_DOUBLE_EQ(work_of_model<GroupedGemm>(plan, true), 2 * of_experts(spec.second->model));
}

// Every rank of a ring computes its own part of the second model's attention, whatever part that is.
TEST(SecondModelPlan, HasTheSameAttentionInEveryOrderOfARing) {
  for (const char* teacher :
       {"teacher: llama-3.2-3b", "teacher: {base: llama-3.2-3b, sliding_window: {window: 96, every: 1}}"}) {
    const auto attention = [&](const char* order) {
      const Plan plan =
          make_plan(second_case(teacher, fmt::format("{{context: 4, context_order: {}, global_batch: 4}}", order)));
      return work_of_model<FlashAttention>(plan, true);
    };
    EXPECT_NEAR(attention("contiguous") / attention("zigzag"), 1, 0.01) << teacher;
  }
}

// Bytes of a kind of buffer in the states of all ranks.
double bytes_in_states(const Plan& plan, std::initializer_list<std::uint16_t> slots) {
  double sum = 0;
  for (std::uint32_t slot = 0; slot < plan.classes.size(); ++slot) {
    for (const std::uint32_t state : states_of(plan, slot)) {
      for (const std::uint16_t s : slots)
        sum += static_cast<double>(plan.blocks[plan.frames[state].block].buffers[s].bytes *
                                   plan.classes[slot].multiplicity);
    }
  }
  return sum;
}

TEST(SecondModelPlan, HoldsItsWeightsAndNoMore) {
  for (const char* layout : {"{data: 4, global_batch: 8}", "{data: 4, sharding: zero3, global_batch: 8}",
                             "{data: 4, sharding: zero1, global_batch: 8}"}) {
    const Spec spec = second_case("teacher: {base: llama-3.2-3b, tied_embeddings: false}", layout);
    const Plan plan = make_plan(spec);
    Spec alone = spec;
    alone.second.reset();
    const Plan without = make_plan(alone);
    const double copies = row_of(spec.strategy.sharding).shards_parameters ? 1 : 4;
    EXPECT_NEAR(bytes_in_states(plan, {kFrozen, kFrozenShard}), copies * 2 * second_elements(spec.second->model, 512),
                4096)
        << layout;
    const std::initializer_list<std::uint16_t> trained = {kParameters, kParameterShard, kGradients, kGradientShard,
                                                          kMaster,     kMoment1,        kMoment2};
    EXPECT_EQ(bytes_in_states(plan, trained), bytes_in_states(without, trained)) << layout;
  }
}

// Ranks share out the experts, and shard all weights over those that hold the same.
TEST(SecondModelPlan, HoldsItsExpertsOnce) {
  for (const char* sharding : {"zero3", "fsdp"}) {
    const Spec spec = second_case(
        "teacher: {base: llama-3.2-3b, tied_embeddings: false, moe: {experts: 8, top_k: 2, feed_forward: 512}}",
        fmt::format("{{data: 4, expert: 2, sharding: {}, global_batch: 8}}", sharding));
    EXPECT_NEAR(bytes_in_states(make_plan(spec), {kFrozenShard}), 2 * second_elements(spec.second->model, 512), 4096)
        << sharding;
  }
}

// A tied teacher on one stage holds its table once.
TEST(SecondModelPlan, HoldsATiedTableOnce) {
  const Spec spec = second_case("teacher: llama-3.2-3b", "{data: 4, global_batch: 8}");
  ASSERT_TRUE(spec.second->model.tied_embeddings);
  EXPECT_NEAR(bytes_in_states(make_plan(spec), {kFrozen}), 4 * 2 * second_elements(spec.second->model, 512), 4096);
}

Bytes largest_named(const Plan& plan, const std::string& name) {
  Bytes most = 0;
  for (const Block& block : plan.blocks) {
    for (const BlockBuffer& b : block.buffers) most = std::max(most, b.name == name ? b.bytes : 0);
  }
  return most;
}

TEST(SecondModelPlan, KeepsLogitsOfBothModelsButSumsOfAReference) {
  for (const std::int64_t tensor : {1, 4}) {
    const std::string strategy =
        fmt::format("{{tensor: {}, data: {}, micro_batch: 2, global_batch: 8}}", tensor, 4 / tensor);
    const Spec student = second_case("teacher: llama-3.2-3b", strategy), policy = second_case("dpo: {}", strategy);
    const Bytes logits = 2 * 512 * 128256 / tensor * 4;
    EXPECT_EQ(largest_named(make_plan(student), "teacher"), logits);
    EXPECT_EQ(largest_named(make_plan(student), "fp32 logits"), logits);
    EXPECT_EQ(largest_named(make_plan(policy), "reference"), 2 * 512 * 8);
  }
}

constexpr const char* kFeatures = "distill: {features: {student: [0, 8, 16], teacher: [0, 14, 28]}}";

// A student's hidden states are projected to the teacher's width, with the work of training that weight, and no more
// is stored of the teacher than the hidden states that the loss reads.
TEST(SecondModelPlan, ProjectsAndKeepsHiddenStates) {
  for (const char* layout : kSecondLayouts) {
    const Spec plain = second_case("teacher: llama-3.2-3b", layout);
    const Spec spec = second_case(fmt::format("teacher: llama-3.2-3b, {}", kFeatures), layout);
    const Plan plan = make_plan(spec);
    const auto tokens = static_cast<double>(spec.strategy.global_batch * spec.sequence);
    const double projections = 3 * static_cast<double>(spec.model.hidden * spec.second->model.hidden);
    // tensor ranks without a part of the rows each project all of them
    EXPECT_DOUBLE_EQ(products_of_model(plan, false) - products_of_model(make_plan(plain), false),
                     6 * tokens * projections)
        << layout;
    EXPECT_EQ(products_of_model(plan, true), products_of_model(make_plan(plain), true)) << layout;
  }
}

// The loss of a student of the teacher's width reads both models' hidden states where they lie.
TEST(SecondModelPlan, ComparesHiddenStatesWhereTheyLie) {
  const std::string same = "teacher: {base: llama-3.2-1b, layers: 28}, ";
  for (const char* layout : kSecondLayouts) {
    const Spec spec = second_case(same + kFeatures, layout);
    const Plan plan = make_plan(spec);
    std::int64_t rows = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* f = std::get_if<FeatureLoss>(&plan.op_of(t).work);
      if (f == nullptr) continue;
      EXPECT_EQ(f->columns, spec.model.hidden);
      rows += f->rows * plan.classes[plan.slot_of(t)].multiplicity;
    }
    // each pair's loss and gradient read every token once
    EXPECT_EQ(rows, 3 * 2 * spec.strategy.global_batch * spec.sequence) << layout;
    EXPECT_EQ(products_of_model(plan, false),
              products_of_model(make_plan(second_case(same + "distill: {}", layout)), false));
    EXPECT_EQ(plan.classes.empty(), false);
  }
}

// A reference has one forward for each of a pair's samples, beside the policy's forward and backward.
TEST(SecondModelPlan, OfPairsHasAForwardForEachSample) {
  const Spec spec = second_case("dpo: {}", "{tensor: 2, data: 2, micro_batch: 2, global_batch: 8}");
  const Plan plan = make_plan(spec);
  EXPECT_DOUBLE_EQ(products_of_model(plan, false), 3 * products_of_model(plan, true));
}

}  // namespace
}  // namespace orrery
