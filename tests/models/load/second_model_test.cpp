#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"

namespace orrery {
namespace {

std::string second_text(std::string_view sections, std::string_view strategy = "{}") {
  return fmt::format(
      "{{model: llama-3.2-1b, sequence: 256, {}, cluster: {{node: dgx-h100, nodes: 1}}, gpus: 4, software: orrery, "
      "strategy: {}}}",
      sections, strategy);
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

// A teacher is refused where it would be refused if it trained, in words that say whose it is.
TEST(SecondModelKeys, RefuseALayoutThatDoesNotFitTheTeacher) {
  const std::string teacher = "teacher: {base: llama-3.2-3b, moe: {experts: 8, top_k: 2, feed_forward: 512}}";
  EXPECT_EQ(second_refusal(teacher, "{data: 4, expert: 4}"), "");
  expect_refused(teacher, "teacher: expert_tensor: 1 * expert: 8 does not divide", "{data: 4, expert: 8}");
  expect_refused(teacher,
                 "t.yaml:1: teacher: strategy.sequence_parallel: tensor ranks without sequence_parallel with experts",
                 "{tensor: 2, data: 2, sequence_parallel: false}");
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
