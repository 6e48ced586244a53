// A student beside a frozen teacher, and a policy beside its reference, against one rank under every layout.
#include <cmath>

#include "exec/memory/caching_memory.h"
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

// A student, of another shape than its teacher. Its layers and heads are cut as any model's.
std::string student(const std::string& model, const std::string& teacher, const std::string& loss = "") {
  return fmt::format("{}\nworkload: distill\nteacher: {}\ndistill: {{temperature: 2{}}}", model, teacher, loss);
}
std::string policy(const std::string& model) { return model + "\nworkload: dpo\ndpo: {beta: 2}"; }

const std::string kWide =
    "{layers: 6, hidden: 96, heads: 8, kv_heads: 4, head_dim: 16, feed_forward: 128, vocab: 250, qk_norm: true}";
const std::string kTiedTeacher =
    "{layers: 4, hidden: 80, heads: 8, kv_heads: 8, feed_forward: 64, vocab: 250, gated: false, norm: layernorm, bias: "
    "true, positions: learned, tied_embeddings: true, dropout: 0.1}";
const std::string kTiedStudent =
    "{name: tiny-tied, layers: 4, hidden: 64, heads: 8, kv_heads: 4, feed_forward: 96, vocab: 250, tied_embeddings: "
    "true}";

const std::string kStudentOfExperts = with_experts("tiny-mixtral", "experts: 8, top_k: 2, feed_forward: 48");
// Experts of another number and shape, latent attention, and a first layer without experts.
const std::string kTeacherOfExperts =
    "{layers: 3, hidden: 48, heads: 4, feed_forward: 64, vocab: 250, mla: {q_lora_rank: 24, kv_lora_rank: 20, "
    "qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}, moe: {experts: 4, top_k: 3, feed_forward: 32, "
    "shared_feed_forward: 48, first_layer: 1, score: sigmoid, correction_bias: true, aux_loss: 0.02}}";
const std::string kLatentStudent =
    with_experts("tiny-latent", "experts: 4, top_k: 1, feed_forward: 48, capacity_factor: 1.25, aux_loss: 0.05",
                 ", mla: {kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}");
const std::string kTeacherWithRecurrence =
    "{layers: 4, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: 250, qk_norm: true, attention_gate: true, "
    "layer_kinds: [recurrence, recurrence, recurrence, attention], recurrence: {heads: 8, groups: 4, key_dim: 5, "
    "value_dim: 6}, moe: {experts: 4, top_k: 2, feed_forward: 24, shared_feed_forward: 16, shared_gate: true}}";

class TwoModels : public testing::TestWithParam<Case> {};

TEST_P(TwoModels, AgreeWithOneRank) { expect_like_one_rank(spec_of(GetParam())); }

const Case kDistilled[] = {
    {student(kLlama, kWide), "data: 2, global_batch: 4"},
    {student(kLlama, kWide, ", divergence: 1, cross_entropy: 0"), "data: 8, sharding: zero1, global_batch: 16"},
    {student(kLlama, kWide), "data: 2, sharding: zero2, global_batch: 8, recompute: full"},
    {student(kLlama, kWide), "data: 4, sharding: zero3, global_batch: 8"},
    {student(kLlama, kWide), "data: 3, sharding: fsdp, global_batch: 6"},
    {student(kLlama, kTiedTeacher), "data: 2, sharding: fsdp, global_batch: 4"},
    {student(kTiedStudent, kTiedTeacher), "data: 4, sharding: zero3, global_batch: 4"},
    {student(kLlama, kWide), "data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {student(kLlama, kWide), "tensor: 4, data: 2, global_batch: 4"},
    {student(kLlama, kTiedTeacher), "tensor: 8, data: 1, sequence_parallel: false, global_batch: 2"},
    {student(kLlama, kWide), "tensor: 2, data: 2, sharding: fsdp, global_batch: 4"},
    {student(kLlama, kWide), "pipeline: 4, data: 2, global_batch: 8"},
    {student(kTiedStudent, kTiedTeacher), "pipeline: 2, tensor: 2, data: 2, sharding: zero1, global_batch: 8"},
    {student(kLlama, kWide), "pipeline: 3, data: 1, schedule: gpipe, global_batch: 4"},
    {student(kLlama, kWide), "pipeline: 2, virtual_stages: 2, data: 2, global_batch: 8"},
    {student(kLlama, kWide), "pipeline: 2, data: 2, schedule: zb-h1, sharding: zero3, global_batch: 8"},
    {student(kLlama, kWide), "pipeline: 2, data: 2, global_batch: 8", "adamw", "megatron-core"},
    {student(kLlama, kWide), "context: 2, tensor: 2, data: 2, global_batch: 4"},
    {student(kGpt, "{layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256}"),
     "pipeline: 2, tensor: 2, data: 2, sequence_parallel: true, global_batch: 8"},
};
INSTANTIATE_TEST_SUITE_P(Distill, TwoModels, testing::ValuesIn(kDistilled));

// A model with experts beside one without, and both with experts; ranks share them out for both models alike.
const Case kWithExperts[] = {
    {student(kLlama, kTeacherOfExperts), "data: 4, expert: 4, sharding: none, clip: 0.1, global_batch: 4"},
    {student(kLlama, kTeacherOfExperts), "data: 4, expert: 2, sharding: zero3, global_batch: 4"},
    {student(kStudentOfExperts, kTeacherOfExperts), "tensor: 2, data: 2, expert: 2, expert_tensor: 2, global_batch: 4"},
    {student(kStudentOfExperts, kTeacherOfExperts),
     "data: 4, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 4"},
    {student(kStudentOfExperts, kTeacherOfExperts), "pipeline: 2, data: 2, expert: 2, global_batch: 4", "adamw",
     "megatron-core"},
    {student(kLatentStudent, kTeacherWithRecurrence), "tensor: 2, data: 2, expert: 2, global_batch: 4"},
    {student(kLlama, kWide), "context: 4, context_order: contiguous, data: 1, global_batch: 2"},
    {policy(kStudentOfExperts), "data: 2, micro_batch: 2, expert: 2, global_batch: 4"},
};
INSTANTIATE_TEST_SUITE_P(Experts, TwoModels, testing::ValuesIn(kWithExperts));

// Weights of both models, and states of the one that trains, come from the host.
const Case kOffloaded[] = {
    {student(kStudentOfExperts, kTeacherOfExperts),
     "data: 4, expert: 2, sharding: zero3, global_batch: 4, offload: {optimizer: cpu, parameters: cpu}"},
    {student(kLlama, kTiedTeacher),
     "tensor: 2, data: 2, sharding: fsdp, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {policy(kTiedStudent),
     "pipeline: 2, data: 1, micro_batch: 2, sharding: zero3, global_batch: 4, offload: {optimizer: cpu, parameters: "
     "cpu}"},
};
INSTANTIATE_TEST_SUITE_P(Offload, TwoModels, testing::ValuesIn(kOffloaded));

// Only the second model's weights come from the host, with the optimizer on the device or with it.
const Case kHosted[] = {
    {student(kLlama, kWide, ", offload: true"), "tensor: 2, data: 2, sharding: fsdp, global_batch: 4"},
    {student(kLlama, kTiedTeacher, ", offload: true, features: {student: [3], teacher: [3]}"),
     "data: 4, sharding: zero3, global_batch: 8, offload: {optimizer: cpu}"},
    {kTiedStudent + "\nworkload: dpo\ndpo: {beta: 2, offload: true}",
     "pipeline: 2, data: 2, micro_batch: 2, sharding: fsdp, global_batch: 4"},
};
INSTANTIATE_TEST_SUITE_P(Hosted, TwoModels, testing::ValuesIn(kHosted));

// Hidden states of both models, from the embeddings to the final norm's input, through a projection where the widths
// differ (kWide) and without one.
const std::string kSameWidth = "{layers: 5, hidden: 64, heads: 4, feed_forward: 80, vocab: 250}";
std::string compared(const std::string& model, const std::string& teacher, const std::string& pairs) {
  return student(model, teacher, fmt::format(", features: {{{}, weight: 3}}", pairs));
}
const std::string kEnds = "student: [0, 1, 4], teacher: [0, 2, 6]", kHalves = "student: [1, 2, 4], teacher: [0, 4, 6]";

const Case kCompared[] = {
    {compared(kLlama, kSameWidth, "student: [2, 3], teacher: [1, 5]"), "data: 2, sharding: zero1, global_batch: 4"},
    {compared(kLlama, kWide, kEnds), "data: 4, sharding: zero3, global_batch: 8, recompute: full"},
    {compared(kTiedStudent, kTiedTeacher, "student: [4], teacher: [4]"), "data: 2, sharding: fsdp, global_batch: 4"},
    {compared(kLlama, kWide, kEnds), "tensor: 4, data: 2, global_batch: 4"},
    {compared(kLlama, kWide, kEnds), "tensor: 4, data: 1, sequence_parallel: false, global_batch: 2"},
    {compared(kLlama, kWide, kHalves), "pipeline: 2, tensor: 2, data: 2, sharding: zero1, global_batch: 8"},
    {compared(kLlama, kSameWidth, "student: [1, 2, 3], teacher: [1, 3, 4]"),
     "pipeline: 2, data: 1, schedule: zb-h1, global_batch: 4"},
    {compared(kLlama, kWide, "student: [0, 4], teacher: [0, 6]"),
     "pipeline: 2, virtual_stages: 2, data: 2, global_batch: 8"},
    {compared(kLlama, kWide, kEnds), "context: 2, tensor: 2, data: 2, global_batch: 4", "adamw", "megatron-core"},
    {compared(kStudentOfExperts, kTeacherOfExperts, "student: [1, 2], teacher: [2, 3]"),
     "data: 4, expert: 2, sharding: zero3, global_batch: 4, offload: {optimizer: cpu, parameters: cpu}"},
};
INSTANTIATE_TEST_SUITE_P(Compare, TwoModels, testing::ValuesIn(kCompared));

const Case kPreferred[] = {
    {policy(kLlama), "data: 2, micro_batch: 2, global_batch: 8"},
    {policy(kLlama), "data: 2, micro_batch: 4, sharding: zero2, global_batch: 8"},
    {policy(kLlama), "data: 4, micro_batch: 2, sharding: fsdp, global_batch: 16"},
    {policy(kTiedStudent), "data: 2, micro_batch: 2, sharding: zero3, global_batch: 4, recompute: full"},
    {policy(kLlama), "tensor: 4, data: 2, micro_batch: 2, global_batch: 4"},
    {policy(kGpt), "tensor: 2, pipeline: 2, data: 2, micro_batch: 2, global_batch: 8"},
    {policy(kLlama), "pipeline: 4, data: 1, micro_batch: 2, schedule: gpipe, global_batch: 8"},
    {policy(kLlama), "pipeline: 2, virtual_stages: 2, data: 2, micro_batch: 2, sharding: zero1, global_batch: 8"},
};
INSTANTIATE_TEST_SUITE_P(Prefer, TwoModels, testing::ValuesIn(kPreferred));

// The second model is on ranks of its own, and cut in its own way.
std::string taught_apart(const std::string& teacher, std::int64_t ranks, const std::string& strategy) {
  return student(kLlama, teacher, fmt::format(", gpus: {}, strategy: {{{}}}", ranks, strategy));
}
std::string preferred_apart(const std::string& model, std::int64_t ranks, const std::string& strategy) {
  return fmt::format("{}\nworkload: dpo\ndpo: {{beta: 2, gpus: {}, strategy: {{{}}}}}", model, ranks, strategy);
}

const Case kOnOwnRanks[] = {
    {taught_apart(kWide, 1, ""), "data: 1, global_batch: 4"},
    {taught_apart(kWide, 2, "tensor: 2"), "data: 1, global_batch: 4"},
    {taught_apart(kWide, 1, ""), "tensor: 2, data: 1, global_batch: 4"},
    {taught_apart(kWide, 4, "tensor: 4"), "tensor: 2, data: 2, sharding: zero1, global_batch: 8"},
    {taught_apart(kTiedTeacher, 2, "pipeline: 2"), "tensor: 4, data: 1, global_batch: 4"},
    {taught_apart(kWide, 4, "tensor: 2, pipeline: 2"), "pipeline: 2, data: 2, global_batch: 12"},
    {taught_apart(kWide, 3, "pipeline: 3"), "pipeline: 2, data: 1, schedule: gpipe, global_batch: 6"},
    {taught_apart(kWide, 1, ""), "data: 2, sharding: fsdp, global_batch: 8"},
    {taught_apart(kWide, 1, ""), "data: 4, micro_batch: 2, sharding: zero3, global_batch: 16"},
    {taught_apart(kWide, 2, "data: 2"), "data: 1, micro_batch: 2, global_batch: 8"},
    {taught_apart(kWide, 4, "data: 2, tensor: 2"), "tensor: 1, data: 4, global_batch: 8"},
    {taught_apart(kWide, 2, "data: 1, tensor: 2, sequence_parallel: false"), "tensor: 1, data: 2, global_batch: 8"},
    {taught_apart(kWide, 2, "data: 2"), "tensor: 2, data: 1, micro_batch: 4, global_batch: 8"},
    {taught_apart(kWide, 1, ""), "tensor: 2, data: 2, sequence_parallel: true, global_batch: 8"},
    {taught_apart(kTiedTeacher, 4, "tensor: 2, data: 2"), "data: 1, micro_batch: 2, global_batch: 4"},
    {taught_apart(kWide, 1, ""), "pipeline: 2, virtual_stages: 2, data: 1, global_batch: 8"},
    {taught_apart(kWide, 2, "tensor: 2"), "pipeline: 2, data: 2, schedule: zb-h1, global_batch: 8"},
    {taught_apart(kWide, 4, "tensor: 2"), "context: 2, data: 1, global_batch: 4"},
    {taught_apart(kWide, 2, "tensor: 2"), "data: 2, global_batch: 8, recompute: full", "adamw", "megatron-core"},
    {taught_apart(kTeacherOfExperts, 4, "data: 4, expert: 2"), "data: 2, micro_batch: 2, global_batch: 8"},
    {student(kStudentOfExperts, kWide, ", gpus: 2, strategy: {pipeline: 2}"), "data: 4, expert: 2, global_batch: 8"},
    {preferred_apart(kLlama, 1, ""), "data: 1, micro_batch: 2, global_batch: 8"},
    {preferred_apart(kLlama, 2, "tensor: 2"), "data: 2, micro_batch: 2, sharding: zero2, global_batch: 8"},
    {preferred_apart(kLlama, 1, ""), "tensor: 2, data: 2, micro_batch: 2, global_batch: 8"},
    {preferred_apart(kTiedStudent, 4, "tensor: 2, pipeline: 2"),
     "pipeline: 2, data: 2, micro_batch: 2, global_batch: 8"},
    {preferred_apart(kLlama, 4, "tensor: 2, data: 2"), "data: 1, micro_batch: 4, global_batch: 8"},
    {preferred_apart(kLlama, 2, "data: 2"), "tensor: 4, data: 1, micro_batch: 2, global_batch: 4"},
};
INSTANTIATE_TEST_SUITE_P(OwnRanks, TwoModels, testing::ValuesIn(kOnOwnRanks));

Result on_one(const std::string& model) {
  const Spec spec = spec_of({model, "data: 1, micro_batch: 2, global_batch: 4"});
  return run(MPI_COMM_SELF, spec);
}

// The policy begins as its reference, so that the first loss is -log sigmoid(0).
TEST(TwoModelsOnOneRank, APolicyBeginsAsItsReference) {
  const Result result = on_one(policy(kLlama));
  EXPECT_NEAR(result.losses.front(), std::log(2.0), 1e-6);
  EXPECT_NE(result.losses.back(), result.losses.front());
}

// Without the divergence a student is a model that trains alone, whatever its teacher.
TEST(TwoModelsOnOneRank, AStudentWithoutDivergenceTrainsAlone) {
  const Result alone = on_one(kLlama);
  const Result result = on_one(student(kLlama, kWide, ", divergence: 0, cross_entropy: 1"));
  EXPECT_LE(worst(result.gradients, alone.gradients).first, kLimit);
  EXPECT_LE(worst(result.weights, alone.weights).first, kLimit);
  for (std::size_t i = 0; i < alone.losses.size(); ++i) EXPECT_NEAR(result.losses[i], alone.losses[i], 1e-5);
  const Result taught = on_one(student(kLlama, kWide));
  EXPECT_GT(worst(taught.gradients, alone.gradients).first, 100 * kLimit);
}

// No rank holds gradients or optimizer states of the second model, which therefore does not change.
TEST(TwoModelsOnOneRank, OnlyTheStudentHasGradients) {
  const Result result = on_one(student(kLlama, kWide));
  for (const auto& [name, values] : result.gradients) EXPECT_EQ(name.find("teacher"), std::string::npos) << name;
  EXPECT_FALSE(result.gradients.empty());
}

// The loss of hidden states has gradients for the weights in front of these and for the projection, and for no others.
TEST(TwoModelsOnOneRank, HiddenStatesTeachTheLayersBefore) {
  const Result plain = on_one(student(kLlama, kWide));
  const Result result = on_one(compared(kLlama, kWide, "student: [2], teacher: [3]"));
  EXPECT_GT(norm(result.gradients.at("layer 2 feature.projection.weight")), 0);
  for (const auto& [name, values] : plain.gradients) {
    const bool before = name.starts_with("layer 0") || name.starts_with("layer 1") || name.starts_with("embedding");
    const double apart = worst({{name, result.gradients.at(name)}}, {{name, values}}).first;
    EXPECT_EQ(apart > 100 * kLimit, before) << name << ": " << apart;
    EXPECT_TRUE(before || apart <= kLimit) << name << ": " << apart;
  }
}

}  // namespace
}  // namespace orrery
