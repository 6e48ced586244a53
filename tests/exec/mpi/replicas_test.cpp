// Stages of several ranks that share each micro-batch (DAPPLE) against one rank.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

const std::string kUntiedGpt =
    "{name: untied-gpt, layers: 4, hidden: 64, heads: 4, feed_forward: 128, vocab: 256, gated: false, positions: "
    "learned, norm: layernorm, bias: true, dropout: 0.1}";

class Replicas : public testing::TestWithParam<Case> {};

TEST_P(Replicas, AgreeWithOneRank) { expect_like_one_rank(spec_of(GetParam())); }

const Case kReplicated[] = {
    {kLlama, "pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 1, stage_replicas: [1, 3], schedule: dapple, micro_batch: 3, global_batch: 12"},
    {kUntiedGpt,
     "pipeline: 2, data: 1, stage_replicas: [2, 3], schedule: dapple, micro_batch: 6, global_batch: 12, bucket_MiB: "
     "0.01"},
    {kUntiedGpt,
     "pipeline: 3, data: 1, stage_replicas: [1, 4, 2], schedule: gpipe, micro_batch: 4, global_batch: 8, recompute: "
     "full"},
    {kLlama,
     "pipeline: 2, data: 2, stage_replicas: [2, 1], schedule: dapple, sharding: zero1, micro_batch: 2, global_batch: "
     "8"},
    {kUntiedGpt,
     "pipeline: 2, data: 1, stage_replicas: [1, 2], schedule: dapple, sharding: zero2, micro_batch: 2, global_batch: "
     "4"},
    {kLlama, "pipeline: 2, data: 2, stage_replicas: [1, 2], sharding: fsdp, micro_batch: 2, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 1, stage_replicas: [3, 1], schedule: zb-h1, micro_batch: 3, global_batch: 12"},
    {kLlama,
     "pipeline: 2, data: 1, virtual_stages: 2, stage_replicas: [2, 4], schedule: interleaved, micro_batch: 4, "
     "global_batch: 16"},
    {kLlama,
     "pipeline: 2, data: 1, virtual_stages: 2, stage_replicas: [2, 1], schedule: zb-v, micro_batch: 2, global_batch: "
     "8"},
    {kLlama,
     "tensor: 2, sequence_parallel: false, pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, "
     "micro_batch: 2, "
     "global_batch: 8"},
    {kLlama,
     "tensor: 2, pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 8"},
    {kLlama,
     "tensor: 2, pipeline: 2, data: 1, stage_replicas: [1, 3], sharding: zero1, micro_batch: 3, global_batch: 12"},
    {kLlama, "tensor: 2, pipeline: 2, data: 1, stage_replicas: [1, 2], sharding: fsdp, micro_batch: 2, global_batch: 8",
     "adamw", "megatron-core"},
    {kUntiedGpt,
     "tensor: 2, pipeline: 3, data: 1, stage_replicas: [1, 2, 1], schedule: gpipe, micro_batch: 2, global_batch: 4, "
     "rank_order: pp-cp-dp-tp"},
    {kGpt, "pipeline: 2, data: 1, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 8"},
    {kGpt,
     "pipeline: 2, data: 2, stage_replicas: [1, 3], schedule: dapple, sharding: zero1, micro_batch: 3, global_batch: "
     "12, bucket_MiB: 0.01"},
    {kGpt,
     "pipeline: 3, data: 1, stage_replicas: [2, 1, 2], schedule: dapple, micro_batch: 2, global_batch: 8, overlap: "
     "{gradient_reduce: false}"},
    {kGpt,
     "pipeline: 3, data: 1, stage_replicas: [2, 1, 2], sharding: zero1, schedule: dapple, micro_batch: 2, "
     "global_batch: 8"},
    {kGpt,
     "pipeline: 3, data: 1, stage_replicas: [2, 1, 2], sharding: fsdp, schedule: dapple, micro_batch: 2, "
     "global_batch: 8"},
    {kGpt,
     "tensor: 2, pipeline: 2, data: 1, stage_replicas: [1, 2], sharding: zero1, schedule: dapple, micro_batch: 2, "
     "global_batch: 8, fused_buffers: true"},
    {kUntiedGpt, "pipeline: 1, data: 1, stage_replicas: [4], schedule: dapple, micro_batch: 4, global_batch: 8"},
    {kLlama, "pipeline: 2, data: 2, stage_replicas: [2, 1], schedule: dapple, micro_batch: 2, global_batch: 8", "sgd",
     "megatron-core"},
    {kLlama,
     "pipeline: 2, data: 1, stage_replicas: [2, 4], schedule: dapple, sharding: zero1, micro_batch: 4, global_batch: 8",
     "adamw", "deepspeed-megatron-2021"},
};
INSTANTIATE_TEST_SUITE_P(All, Replicas, testing::ValuesIn(kReplicated));

// A slice of a micro-batch that is sent or received at the wrong offset is detected.
TEST(Slices, InTheWrongPlaceShow) {
  const Spec spec = spec_of(kReplicated[0]);
  const auto mistaken = [](Plan& plan) {
    for (Op& op : plan.ops) {
      if (auto* t = std::get_if<Transfer>(&op.work)) t->first = 0;
    }
  };
  const auto d = distance_of(spec, {.plan = mistaken});
  EXPECT_TRUE(!d || d->gradient > 10 * kLimit);
}

}  // namespace
}  // namespace orrery
