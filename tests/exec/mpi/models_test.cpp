// Models whose parts have special layouts, against one rank: windows, parallel blocks, odd widths, latent attention,
// predictions of further tokens, tokens that go to experts in two stages.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

class ModelKinds : public testing::TestWithParam<Case> {};

TEST_P(ModelKinds, AgreeWithOneRank) { expect_like_one_rank(spec_of(GetParam())); }

// Models whose layers differ, where a rank's part of a tensor, a piece of a shard or a mask may go wrong.
const std::string kPlain =
    "{name: tiny-plain, layers: 2, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: none, "
    "norm: layernorm, bias: false}";
const std::string kParallel =
    "{name: tiny-parallel, layers: 3, hidden: 64, heads: 8, kv_heads: 1, feed_forward: 128, vocab: 256, gated: false, "
    "parallel_block: true, norm: layernorm, bias: true, tied_embeddings: true}";
const std::string kGemma =
    "{name: tiny-gemma, layers: 3, hidden: 64, heads: 8, kv_heads: 2, feed_forward: 96, vocab: 256, post_norms: true, "
    "scaled_embedding: true, qk_norm: true, tied_embeddings: true, sliding_window: {window: 8, every: 3}}";
const std::string kOdd =
    "{name: tiny-odd, layers: 3, hidden: 45, heads: 3, kv_heads: 3, head_dim: 14, feed_forward: 51, vocab: 251}";
const std::string kHeadNorms =
    "{name: tiny-head-norms, layers: 2, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, feed_forward: 64, vocab: 256, "
    "qk_norm: true, norm: layernorm, bias: true}";

const std::string kLatent =
    "{name: tiny-latent, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 250, mla: {q_lora_rank: 24, "
    "kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 10}}";
const std::string kLatentDirect =
    "{name: tiny-latent-direct, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 250, bias: true, mla: "
    "{q_lora_rank: 0, kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: 20}}";

const Case kModels[] = {
    {kLatent, "data: 2, global_batch: 4"},
    {kLatent, "tensor: 2, data: 2, sharding: zero1, global_batch: 4, recompute: [mla_up_proj, norm]"},
    {kLatent, "tensor: 4, data: 1, sequence_parallel: false, global_batch: 2"},
    {kLatent, "tensor: 2, pipeline: 2, data: 2, global_batch: 4, recompute: full"},
    {kLatentDirect, "tensor: 2, data: 2, sharding: fsdp, global_batch: 4"},
    {kWindow, "tensor: 2, data: 2, global_batch: 4"},
    {kWindow, "tensor: 2, data: 1, attention: unfused, global_batch: 2"},
    {kWindow, "pipeline: 3, data: 2, sharding: zero1, recompute: full, global_batch: 4"},
    {kPlain, "tensor: 2, data: 2, sharding: fsdp, global_batch: 4"},
    {kPlain, "tensor: 4, pipeline: 2, data: 1, global_batch: 4"},
    {kParallel, "tensor: 4, data: 2, global_batch: 4"},
    {kParallel, "tensor: 2, pipeline: 3, data: 1, global_batch: 4, recompute: [norm, activation]"},
    {kGemma, "tensor: 4, data: 2, sharding: zero1, global_batch: 4"},
    {kGemma, "tensor: 2, pipeline: 3, data: 1, global_batch: 4"},
    {kGemma, "data: 3, sharding: fsdp, global_batch: 6"},
    {kOdd, "tensor: 3, data: 2, micro_batch: 3, global_batch: 12"},
    {kOdd, "tensor: 3, data: 2, sharding: zero1, micro_batch: 3, global_batch: 12"},
    {kOdd, "data: 7, sharding: zero1, global_batch: 7"},
    {kOdd, "data: 7, sharding: zero2, global_batch: 14"},
    {kOdd, "data: 7, sharding: fsdp, global_batch: 7"},
    {kOdd, "data: 7, sharding: zero3, global_batch: 7", "sgd"},
    {kOdd, "tensor: 3, data: 2, sharding: fsdp, micro_batch: 3, global_batch: 6"},
    {kOdd, "data: 6, sharding: hsdp, shard_group: 3, global_batch: 6"},
    {kHeadNorms, "data: 2, global_batch: 2"},
    {kGpt, "tensor: 2, data: 1, micro_batch: 3, global_batch: 6"},
    {kGpt, "tensor: 4, data: 2, attention: unfused, global_batch: 4"},
    {kGpt, "tensor: 2, pipeline: 2, virtual_stages: 2, data: 2, global_batch: 4"},
    {kGpt, "pipeline: 2, virtual_stages: 2, data: 2, sharding: zero1, recompute: full, global_batch: 8"},
    {kGpt, "data: 2, global_batch: 4, clip: 0"},
    {kLlama, "data: 3, micro_batch: 3, sharding: fsdp, global_batch: 18"},
};

// A small model with the architecture of DeepSeek-V3.
const std::string kDeepSeekV3 = with_experts(
    "tiny-deepseek-v3",
    "experts: 8, top_k: 3, feed_forward: 32, shared_feed_forward: 48, first_layer: 1, score: sigmoid, "
    "correction_bias: true, aux_loss: 0.02, expert_groups: 4, top_groups: 2",
    ", mtp_layers: 1, mla: {q_lora_rank: 24, kv_lora_rank: 20, qk_nope_head_dim: 12, qk_rope_head_dim: 8, v_head_dim: "
    "10}");

// Latent attention over context groups: expanded keys and values travel.
const Case kLatentContext[] = {
    {kLatent, "context: 2, data: 1, global_batch: 2"},
    {kLatent, "context: 3, context_order: contiguous, data: 2, sharding: zero1, global_batch: 4"},
    {kLatent, "context: 2, context_kind: allgather, tensor: 2, data: 1, global_batch: 2, micro_batch: 2"},
    {kLatentDirect, "context: 2, tensor: 2, data: 2, sharding: fsdp, global_batch: 4, recompute: selective"},
    {kLatent, "context: 2, pipeline: 2, data: 2, global_batch: 4, recompute: [mla_up_proj]"},
    {kLatent, "context: 4, context_kind: ulysses, data: 2, global_batch: 2, micro_batch: 1"},
    {kLatentDirect, "context: 2, context_kind: ulysses, tensor: 2, data: 1, global_batch: 4, micro_batch: 2"},
    {kLatent, "context: 4, context_kind: {ring: 2, ulysses: 2}, data: 2, sharding: zero1, global_batch: 4"},
    {kDeepSeekV3, "context: 2, context_kind: ulysses, data: 2, expert: 4, sharding: zero1, global_batch: 2"},
};

// Tokens are dispatched over nodes of two ranks, and of three (the last has two): data for another node go there first.
TEST(HierarchicalDispatch, AgreesWithOneRank) {
  const std::pair<const char*, const char*> cases[] = {
      {"experts: 8, top_k: 2, feed_forward: 48", "data: 4, expert: 4, global_batch: 4"},
      {"experts: 8, top_k: 2, feed_forward: 48", "data: 8, expert: 8, global_batch: 8"},
      {"experts: 8, top_k: 3, feed_forward: 32, capacity_factor: 1, pad_to_capacity: true",
       "data: 8, expert: 8, global_batch: 8"},
      {"experts: 8, top_k: 2, feed_forward: 48", "tensor: 2, data: 4, expert: 4, sharding: zero1, global_batch: 4"}};
  for (const auto& [moe, strategy] : cases) {
    for (const int node : {2, 3}) {
      SCOPED_TRACE(fmt::format("{}, nodes of {}", strategy, node));
      Spec spec = spec_of({with_experts("tiny-two-stage", std::string(moe) + ", dispatch: hierarchical"), strategy});
      spec.cluster.gpus_per_node = node;
      expect_like_one_rank(spec);
    }
  }
}

// Further tokens predicted beside the next one, with the embedding's table on the same stage or on another.
const std::string kPredicts =
    "{name: tiny-mtp, layers: 2, hidden: 64, heads: 4, kv_heads: 2, feed_forward: 96, vocab: 250, mtp_layers: 1}";
const std::string kPredictsTwo =
    "{name: tiny-mtp-2, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 250, mtp_layers: 2, norm: "
    "layernorm, "
    "bias: true}";
const Case kPredictions[] = {
    {kPredicts, "data: 2, global_batch: 4"},
    {kPredicts, "data: 2, sharding: zero1, global_batch: 4", "adamw", "megatron-core"},
    {kPredicts, "tensor: 2, data: 2, global_batch: 4"},
    {kPredicts, "tensor: 2, data: 1, sequence_parallel: false, global_batch: 2, micro_batch: 2"},
    {kPredicts, "pipeline: 2, data: 2, global_batch: 4"},
    {kPredicts, "pipeline: 2, data: 2, sharding: zero1, global_batch: 8, recompute: full"},
    {kPredicts, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, schedule: zb-h1, global_batch: 8"},
    {kPredicts, "pipeline: 2, virtual_stages: 2, stage_layers: [1, 0, 1, 0], data: 2, global_batch: 4"},
    {kPredicts, "pipeline: 4, data: 1, stage_layers: [1, 0, 1, 0], schedule: dualpipe, global_batch: 8"},
    {kPredicts,
     "pipeline: 4, data: 2, sharding: zero1, stage_layers: [1, 0, 1, 0], schedule: dualpipe, global_batch: 16"},
    {kPredictsTwo,
     "pipeline: 2, data: 2, sharding: zero1, stage_layers: [0, 1, 1, 0], schedule: zb-v, global_batch: 8"},
    {kPredicts, "context: 2, data: 2, global_batch: 4"},
    {kPredictsTwo, "tensor: 2, data: 2, sharding: zero1, global_batch: 4, micro_batch: 2"},
    {kPredicts, "data: 2, sharding: zero2, global_batch: 4"},
    {kPredicts, "data: 2, sharding: zero3, global_batch: 4, recompute: full"},
    {kPredictsTwo, "tensor: 2, data: 2, sharding: fsdp, global_batch: 4", "adamw", "pytorch-fsdp"},
    {kPredictsTwo, "data: 3, sharding: fsdp-grad-op, global_batch: 6"},
    {kPredicts, "pipeline: 2, data: 2, sharding: zero2, global_batch: 8"},
    {kPredictsTwo, "pipeline: 2, tensor: 2, data: 2, sharding: zero3, global_batch: 8"},
    {kPredicts, "pipeline: 2, data: 4, sharding: hsdp, shard_group: 2, global_batch: 8"},
    {kPredicts, "data: 1, global_batch: 2, offload: {optimizer: cpu, gradients: cpu}"},
    {kPredicts,
     "data: 2, sharding: zero3, global_batch: 4, offload: {optimizer: cpu, gradients: cpu, parameters: cpu}"},
    {kPredictsTwo, "pipeline: 2, tensor: 2, data: 2, sharding: zero1, global_batch: 4"},
    {kDeepSeekV3, "data: 4, expert: 4, global_batch: 4"},
    {kDeepSeekV3, "tensor: 2, pipeline: 2, data: 2, expert: 4, sharding: zero1, global_batch: 4"},
    {kDeepSeekV3, "data: 4, expert: 2, sharding: fsdp, global_batch: 4"},
    {kDeepSeekV3, "pipeline: 2, data: 4, expert: 2, sharding: hsdp, shard_group: 2, global_batch: 8"},
};

// Before training, the loss of every prediction is about log(vocabulary); further predictions add 0.3 of that together.
TEST(Predictions, AddToTheLoss) {
  for (const std::string& model : {kPredicts, kPredictsTwo}) {
    const Spec spec = spec_of({model, "data: 1, global_batch: 2"});
    MPI_Comm some = ranks_for(spec);
    if (some == MPI_COMM_NULL) continue;
    EXPECT_NEAR(reference_of(spec).losses.front() / (1.3 * std::log(250)), 1, 0.02);
    MPI_Comm_free(&some);
  }
}

INSTANTIATE_TEST_SUITE_P(LatentContext, ModelKinds, testing::ValuesIn(kLatentContext));
INSTANTIATE_TEST_SUITE_P(Predictions, ModelKinds, testing::ValuesIn(kPredictions));
INSTANTIATE_TEST_SUITE_P(Models, ModelKinds, testing::ValuesIn(kModels));

}  // namespace
}  // namespace orrery
