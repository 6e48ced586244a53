// The plan of two models on GPUs of their own: its work, its memory and the transfers between both.
#include "models/tasks/join_models.h"

#include <set>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/layers/blocks.h"
#include "models/load/load_spec.h"
#include "models/plan/check.h"
#include "models/plan/unfold.h"
#include "models/planner/asynchronous.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

Spec apart_spec(std::string_view section, std::string_view own, std::string_view strategy, std::int64_t gpus,
                std::string_view software = "orrery") {
  return parse_spec(fmt::format("{{model: llama-3.2-1b, sequence: 512, {} {}}}, cluster: {{node: dgx-h100, nodes: 4}}, "
                                "gpus: {}, software: {}, strategy: {{{}, global_batch: 16}}}}",
                                section, own, gpus, software, strategy),
                    "t.yaml");
}

constexpr const char *kTaught = "teacher: {base: llama-3.2-3b, tied_embeddings: false}, distill: {",
                     *kPreferred = "dpo: {";

struct Layouts {
  const char *own, *trained;
  std::int64_t gpus;
};
constexpr Layouts kLayouts[] = {
    {"gpus: 1", "data: 4, micro_batch: 2", 5},
    {"gpus: 8, strategy: {tensor: 8}", "tensor: 2, data: 2, micro_batch: 2", 12},
    {"gpus: 2, strategy: {pipeline: 2}", "pipeline: 2, data: 2, micro_batch: 2", 6},
    {"gpus: 4, strategy: {data: 4}", "data: 2, micro_batch: 2, sharding: zero3", 6},
    {"gpus: 4, strategy: {tensor: 2, data: 2}", "tensor: 4, data: 1, micro_batch: 4", 8},
};

std::vector<Spec> apart_specs() {
  std::vector<Spec> all;
  for (const Layouts& l : kLayouts) {
    for (const char* section : {kTaught, kPreferred}) all.push_back(apart_spec(section, l.own, l.trained, l.gpus));
  }
  return all;
}

double products(const Plan& plan, bool second) {
  double sum = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const auto* g = std::get_if<Gemm>(&plan.op_of(t).work);
    const RankClass& slot = plan.classes[plan.slot_of(t)];
    if (g == nullptr || g->heads > 0 || slot.second != second) continue;
    sum += cost_of(*g, 2).flops * static_cast<double>(slot.multiplicity);
  }
  return sum;
}

double matrices(const Model& m) {
  double sum = static_cast<double>(m.vocab * m.hidden);
  for (std::int64_t i = 0; i < m.layers; ++i) {
    for (const Parameter& p : layer_parameters(m, i)) sum += p.in > 1 ? static_cast<double>(p.out * p.in) : 0;
  }
  return sum;
}

TEST(JoinModels, HasTwoOperationsOfTheFrozenModelAndSixOfTheOtherForEachWeightAndToken) {
  for (const Spec& spec : apart_specs()) {
    const Plan plan = make_plan(spec);
    const auto tokens = static_cast<double>(spec.strategy.global_batch * spec.sequence);
    EXPECT_DOUBLE_EQ(products(plan, false), 6 * tokens * matrices(spec.model));
    EXPECT_DOUBLE_EQ(products(plan, true), 2 * tokens * matrices(spec.second->model));
  }
}

// The bytes of some buffers of the states of the ranks of one model.
double in_states(const Plan& plan, bool second, std::initializer_list<std::uint16_t> buffers) {
  double sum = 0;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (block.role != BlockRole::state || plan.classes[f.slot].second != second) continue;
    for (const std::uint16_t b : buffers)
      sum += static_cast<double>(block.buffers[b].bytes * plan.classes[f.slot].multiplicity);
  }
  return sum;
}

TEST(JoinModels, LeavesTheFrozenModelsWeightsAloneOnItsRanks) {
  for (const Spec& spec : apart_specs()) {
    const Plan plan = make_plan(spec);
    const auto elements = static_cast<double>(parameter_count(spec.second->model, spec.sequence));
    const auto copies = static_cast<double>(spec.second->strategy->data);
    const bool ends = spec.second->model.tied_embeddings && spec.second->strategy->pipeline > 1;
    const double table = ends ? static_cast<double>(spec.model.vocab * spec.model.hidden) : 0;
    // norms lie on all tensor ranks
    const double norms = 1e-3 * 2 * elements * copies;
    EXPECT_NEAR(in_states(plan, true, {kFrozen}), 2 * (elements + table) * copies, norms);
    EXPECT_EQ(in_states(plan, true, {kParameters, kGradients, kGradientShard, kMaster, kMoment1, kMoment2}), 0);
    EXPECT_EQ(in_states(plan, false, {kFrozen, kFrozenShard}), 0);
  }
}

// The loss keeps b s V / t numbers of fp32 of the teacher, wherever they come from.
TEST(JoinModels, KeepsTheTeachersLogitsForTheLoss) {
  for (const std::int64_t tensor : {1, 4}) {
    const Spec spec = apart_spec(kTaught, "gpus: 2, strategy: {tensor: 2}",
                                 fmt::format("tensor: {}, data: {}, micro_batch: 2", tensor, 4 / tensor), 6);
    const Plan plan = make_plan(spec);
    Bytes kept = 0;
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& b : block.buffers) kept = std::max(kept, b.name == "teacher" ? b.bytes : 0);
    }
    EXPECT_EQ(kept, 2 * 512 * 128256 / tensor * 4);
  }
}

// All logits cross once, in 16 bits, or two numbers of fp32 for each token and each rank that needs them.
TEST(JoinModels, SendsEveryNumberOnce) {
  for (const Spec& spec : apart_specs()) {
    const Plan plan = make_plan(spec);
    Bytes sent = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      if (c == nullptr || c->group != Dimension::hand_over) continue;
      sent += c->sent * plan.classes[plan.slot_of(t)].multiplicity;
    }
    const std::int64_t tokens = spec.strategy.global_batch * spec.sequence;
    const bool teaches = spec.second->role == SecondModel::Role::teacher;
    EXPECT_EQ(sent, teaches ? tokens * 128256 * 2 : tokens * 8 * spec.strategy.tensor);
  }
}

// Both ends of every hand-over are of the same micro-batch, also on every rank by itself.
TEST(JoinModels, HandsOverMicroBatchesInOrder) {
  for (const Spec& spec : apart_specs()) {
    const Plan folded = make_plan(spec), plan = unfold(folded);
    EXPECT_NO_THROW(check_plan(plan));
    for (std::uint32_t m = 0; m < plan.matches.size(); ++m) {
      const auto members = plan.members_of(m);
      const auto* c = std::get_if<Collective>(&plan.op_of(members.front()).work);
      if (c == nullptr || c->group != Dimension::hand_over) continue;
      std::set<std::int32_t> micro_batches;
      for (const TaskId t : members) micro_batches.insert(plan.frames[plan.tasks[t].frame].micro_batch);
      EXPECT_EQ(micro_batches.size(), 1U);
      const GroupTable& table = plan.dimensions[static_cast<std::size_t>(Dimension::hand_over)];
      const auto rank = static_cast<std::size_t>(plan.classes[plan.slot_of(members.front())].representative);
      EXPECT_EQ(members.size(), table.groups[static_cast<std::size_t>(table.member_of[rank])].size());
    }
  }
}

TEST(JoinModels, NumbersRanksAndStagesBehindThoseThatTrain) {
  const Plan plan = make_plan(
      apart_spec(kTaught, "gpus: 4, strategy: {pipeline: 2, tensor: 2}", "pipeline: 2, tensor: 2, micro_batch: 1", 8));
  ASSERT_EQ(plan.classes.size(), 4U);
  EXPECT_EQ(plan.ranks, 8);
  for (std::size_t s = 0; s < 4; ++s) {
    EXPECT_EQ(plan.classes[s].stage, static_cast<std::int64_t>(s));
    EXPECT_EQ(plan.classes[s].representative, 2 * static_cast<std::int64_t>(s));
    EXPECT_EQ(plan.classes[s].second, s > 1);
    EXPECT_EQ(plan.last_stage(plan.classes[s]), s > 1 ? 3 : 1);
  }
  EXPECT_EQ(plan.classes[2].name, "teacher stage 0");
}

// The host of a frozen rank waits for what it sent of a micro-batch before it issues the one kMicroBatchesAhead later.
TEST(RunAhead, WaitsForOutputThatWasSent) {
  const Plan plan = make_plan(apart_spec(kTaught, "gpus: 2, strategy: {pipeline: 2}", "data: 4, micro_batch: 1", 6));
  for (const RankClass& slot : plan.classes) {
    if (!slot.second) continue;
    std::int64_t waits = 0;
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      if (plan.op_of(t).name != "wait for sent output") continue;
      ++waits;
      EXPECT_TRUE(plan.op_of(t).host_waits);
      const std::int32_t now = plan.frames[plan.tasks[t].frame].micro_batch;
      for (const TaskId d : plan.dependencies_of(t))
        EXPECT_EQ(plan.frames[plan.tasks[d].frame].micro_batch, now - kMicroBatchesAhead);
      EXPECT_FALSE(plan.dependencies_of(t).empty());
    }
    EXPECT_EQ(waits, plan.micro_batches - kMicroBatchesAhead);
  }
}

}  // namespace
}  // namespace orrery
