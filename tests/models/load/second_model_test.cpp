#include <fstream>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/plan/hash.h"
#include "models/planner/make_plan.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

std::string second_text(std::string_view sections, std::string_view strategy = "{}",
                        std::string_view software = "orrery") {
  return fmt::format(
      "{{model: llama-3.2-1b, sequence: 256, {}, cluster: {{node: dgx-h100, nodes: 1}}, gpus: 4, software: {}, "
      "strategy: {}}}",
      sections, software, strategy);
}

std::string second_refusal(std::string_view sections, std::string_view strategy = "{}") {
  try {
    make_plan(parse_spec(second_text(sections, strategy), "t.yaml"));
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void expect_refused(std::string_view sections, std::string_view why, std::string_view strategy = "{}") {
  const std::string refusal = second_refusal(sections, strategy);
  EXPECT_NE(refusal.find(why), std::string::npos) << sections << ": " << refusal;
}

TEST(SecondModelKeys, RefusesWhatItCannotSay) {
  expect_refused("workload: distill", "teacher: missing");
  expect_refused("teacher: llama-3.2-3b, workload: train", "it goes with workload: distill");
  expect_refused("dpo: {}, workload: distill, teacher: llama-3.2-3b", "it goes with workload: dpo");
  expect_refused("teacher: llama-2-7b", "the student's 128256");
  expect_refused("teacher: {base: llama-3.2-3b, hiden: 8}", "teacher.hiden");
  expect_refused("teacher: {base: llama-3.2-3b, heads: 3, kv_heads: 3}", "teacher: tensor: 4 does not divide heads: 3",
                 "{tensor: 4}");
  expect_refused("teacher: {base: llama-3.2-3b, layers: 1}", "teacher: pipeline: 4", "{pipeline: 4, data: 1}");
  expect_refused("teacher: llama-3.2-3b, distill: {temperature: 0}", "distill.temperature: 0 is not above 0");
  expect_refused("teacher: llama-3.2-3b, distill: {divergence: 0, cross_entropy: 0}", "there is no loss");
  expect_refused("dpo: {beta: -1}", "dpo.beta: -1");
  expect_refused("dpo: {}", "no pairs", "{micro_batch: 1, global_batch: 4}");
  expect_refused("dpo: {}", "context", "{micro_batch: 2, context: 2, global_batch: 4}");
  expect_refused("teacher: llama-3.2-3b", "models without experts", "{data: 4, expert: 2}");
  EXPECT_EQ(second_refusal("teacher: llama-3.2-3b"), "");
  EXPECT_EQ(second_refusal("dpo: {}", "{micro_batch: 2, global_batch: 8}"), "");
}

// Pairs of hidden states must exist, and lie on one virtual stage.
TEST(SecondModelKeys, RefuseHiddenStatesThatCannotBeCompared) {
  const auto with = [](std::string_view features) {
    return fmt::format("teacher: llama-3.2-3b, distill: {{features: {{{}}}}}", features);
  };
  expect_refused(with("student: [4, 8], teacher: [7]"), "2 hidden states of the student beside 1 of the teacher");
  expect_refused(with("student: [17], teacher: [7]"), "distill.features.student: 17 is not between 0 and layers: 16");
  expect_refused(with("student: [7], teacher: [-1]"), "distill.features.teacher: -1 is not between 0 and layers: 28");
  expect_refused(with("student: [4, 4], teacher: [7, 8]"), "distill.features.student: 4 is there twice");
  expect_refused(with("student: [4], teacher: [7], weight: 0"), "distill.features.weight: 0 is not above 0");
  expect_refused(with("student: [4], teacher: [7], depth: 2"), "distill.features.depth");
  const std::string_view staged = "{pipeline: 4, data: 1}";
  expect_refused(with("student: [4], teacher: [6]"),
                 "distill.features: the student's hidden states 4 are read on virtual stage 1, the teacher's 6 on 0",
                 staged);
  EXPECT_EQ(second_refusal(with("student: [4, 8, 16], teacher: [7, 14, 28]"), staged), "");
  EXPECT_EQ(second_refusal(with("student: [0, 16], teacher: [0, 28]")), "");
}

// A second model on GPUs of its own needs degrees that are multiples or divisors of those of the model that trains.
TEST(SecondModelKeys, RefuseDegreesThatDoNotNest) {
  const auto with = [](std::string_view own) { return fmt::format("teacher: llama-3.2-3b, distill: {{{}}}", own); };
  expect_refused(with("strategy: {tensor: 2}"), "distill.strategy: it needs GPUs of its own");
  expect_refused(with("gpus: 4"), "gpus: 4 leaves none for the model that trains beside 4 of the teacher");
  expect_refused(with("gpus: 2, strategy: {tensor: 2, data: 2}"),
                 "distill.gpus: 2 is not its tensor * pipeline * data * strategy.context = 2 * 1 * 2 * 1");
  expect_refused(with("gpus: 3, strategy: {tensor: 3}"), "teacher: tensor: 3 does not divide feed_forward",
                 "{data: 1}");
  expect_refused(with("gpus: 2"), "distill.strategy.data: 2 does not divide the samples of a micro-batch",
                 "{tensor: 2, data: 1}");
  expect_refused(with("gpus: 1, strategy: {sharding: fsdp}"), "distill.strategy.sharding");
  expect_refused(with("gpus: 1"), "t.yaml:1: gpus: 4 less 1 of the teacher is not a multiple of", "{tensor: 2}");
  expect_refused(with("gpus: 2, features: {student: [4], teacher: [7]}"), "hidden states compared", "{micro_batch: 2}");
  expect_refused(with("gpus: 2, offload: true"), "host", "{micro_batch: 2, sharding: zero3, data: 2}");
  EXPECT_EQ(second_refusal(with("gpus: 2, strategy: {tensor: 2}"), "{data: 2}"), "");
  EXPECT_EQ(second_refusal("dpo: {gpus: 2}", "{micro_batch: 2, data: 2, global_batch: 8}"), "");
}

TEST(SecondModelKeys, CutTheSecondModelByItsOwnDegrees) {
  const Spec spec = parse_spec(
      second_text("teacher: llama-3.2-3b, distill: {gpus: 2, strategy: {pipeline: 2}}", "{data: 2, micro_batch: 2}"),
      "t.yaml");
  EXPECT_EQ(spec.gpus, 4);
  EXPECT_EQ(spec.strategy.gpus(), 2);
  const Spec own = second_spec(spec);
  EXPECT_EQ(own.strategy.pipeline, 2);
  EXPECT_EQ(own.strategy.data, 1);
  EXPECT_EQ(own.strategy.micro_batch, 4);  // the samples of both data ranks of the student
  EXPECT_EQ(own.strategy.micro_batches(), spec.strategy.micro_batches());
}

// A teacher is refused where it would be refused if it trained, in words that say whose it is.
TEST(SecondModelKeys, RefuseALayoutThatDoesNotFitTheTeacher) {
  const std::string teacher = "teacher: {base: llama-3.2-3b, moe: {experts: 8, top_k: 2, feed_forward: 512}}";
  EXPECT_EQ(second_refusal(teacher, "{data: 4, expert: 4}"), "");
  expect_refused(teacher, "teacher: expert_tensor: 1 * expert: 8 does not divide", "{data: 4, expert: 8}");
  expect_refused(teacher,
                 "t.yaml:1: teacher: strategy.sequence_parallel: tensor ranks without sequence_parallel with experts",
                 "{tensor: 2, data: 2, sequence_parallel: false}");
}

// A refusal that a teacher's own property causes names the teacher's key and line, not those of the student.
TEST(SecondModelKeys, NameTheTeachersKeyWhereItIsRefused) {
  const std::string text = second_refusal(
      "\n teacher: {base: llama-3.2-3b, attention_sinks: true,\n mla: {kv_lora_rank: 512, qk_nope_head_dim: 128, "
      "qk_rope_head_dim: 64, v_head_dim: 128}}");
  EXPECT_EQ(text.find("t.yaml:2: teacher.attention_sinks: attention sinks with latent attention: "), 0U) << text;
}

constexpr const char* kOfExperts = "teacher: {base: llama-3.2-3b, moe: {experts: 8, top_k: 2, feed_forward: 512}}";

// Stacks that cut experts over the tensor ranks do so if the teacher alone has experts.
TEST(SecondModelKeys, CutTheTeachersExpertsByTheStacksRule) {
  const auto cut = [](const char* software) {
    const std::string text = second_text(kOfExperts, "{tensor: 2, sequence_parallel: true}", software);
    return parse_spec(text, "t.yaml").strategy.expert_tensor;
  };
  EXPECT_EQ(cut("megatron-core"), 2);
  EXPECT_EQ(cut("orrery"), 1);
}

TEST(SecondModelKeys, OverlapWhatTheTeacherSharesAlone) {
  const std::string overlap = "{data: 4, expert: 4, overlap: {expert: true}}";
  EXPECT_EQ(second_refusal("teacher: {base: llama-3.2-3b, moe: {experts: 8, top_k: 2, feed_forward: 512, "
                           "shared_feed_forward: 512}}",
                           overlap),
            "");
  expect_refused(kOfExperts, "models without shared experts", overlap);
}

// Loads from a file count for a teacher's experts as for a student's, and for the copy that a policy's reference is.
TEST(SecondModelKeys, ReadTheLoadsOfBothModelsExperts) {
  const test::TemporaryFolder folder;
  const std::string moe =
                        "moe: {experts: 4, top_k: 1, feed_forward: 512, imbalance: " + folder.path("loads.json") + "}",
                    teacher = "teacher: {base: llama-3.2-3b, " + moe + "}", layout = "{data: 4, expert: 4}";
  expect_refused(teacher, "loads.json", layout);
  const auto planned = [&](const char* loads) {
    std::ofstream(folder.path("loads.json")) << loads;
    return plan_hash(make_plan(parse_spec(second_text(teacher, layout), "t.yaml")));
  };
  const std::string even = planned("[[1, 1, 1, 1]]"), uneven = planned("[[5, 1, 1, 1]]");
  EXPECT_NE(even, uneven);
  const Spec policy = parse_spec(second_text("dpo: {}", "{micro_batch: 2, global_batch: 8, data: 4, expert: 4}"),
                                 "t.yaml", {"model={base: llama-3.2-1b, " + moe + "}"});
  ASSERT_TRUE(policy.second->model.moe->loads);
  EXPECT_EQ(policy.second->model.moe->loads->front().front(), 5);
}

// A frozen model has no loss that balances the tokens of experts.
TEST(SecondModelKeys, GiveTheTeacherNoLossOfItsOwn) {
  const Spec spec = parse_spec(
      second_text("teacher: {base: llama-3.2-3b, moe: {experts: 8, top_k: 2, feed_forward: 512, aux_loss: 0.1}}"),
      "t.yaml");
  EXPECT_EQ(spec.second->model.moe->aux_loss, 0);
}

TEST(SecondModelKeys, SayWhatTheWorkloadIs) {
  const Spec student = parse_spec(second_text("teacher: Llama-3.2-3B-Instruct"), "t.yaml");
  ASSERT_TRUE(student.second);
  EXPECT_EQ(student.second->role, SecondModel::Role::teacher);
  EXPECT_EQ(student.second->model.layers, 28);
  EXPECT_EQ(student.second->divergence, 0.5);
  EXPECT_EQ(student.second->cross_entropy, 0.5);
  const Spec policy = parse_spec(second_text("workload: dpo", "{micro_batch: 2, global_batch: 8}"), "t.yaml");
  ASSERT_TRUE(policy.second);
  EXPECT_EQ(policy.second->role, SecondModel::Role::reference);
  EXPECT_EQ(policy.second->model.layers, policy.model.layers);
  EXPECT_EQ(policy.second->beta, 0.1);
  EXPECT_FALSE(parse_spec(second_text("workload: train"), "t.yaml").second);
}

}  // namespace
}  // namespace orrery
