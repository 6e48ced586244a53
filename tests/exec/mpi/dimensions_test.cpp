// All dimensions at once (5D: data, tensor, pipeline, context, expert), of 16 ranks, against one rank.
#include "tests/exec/strategy_run.h"

namespace orrery {
namespace {

using namespace test;

class FiveDimensions : public testing::TestWithParam<Case> {};

TEST_P(FiveDimensions, AgreeWithOneRank) { expect_like_one_rank(spec_of(GetParam())); }

const std::string kBalancedMixtral =
    with_experts("tiny-mixtral", "experts: 8, top_k: 2, feed_forward: 48, aux_loss: 0.05");
const std::string kSharedExpert =
    with_experts("tiny-shared", "experts: 4, top_k: 2, feed_forward: 48, shared_feed_forward: 32, first_layer: 1");

const Case kFiveDimensions[] = {
    {kBalancedMixtral, "tensor: 2, context: 2, pipeline: 2, data: 2, expert: 4, expert_tensor: 1, global_batch: 8"},
    {kBalancedMixtral, "tensor: 2, context: 2, pipeline: 2, data: 2, expert: 2, sharding: zero1, global_batch: 4"},
    {kBalancedMixtral,
     "tensor: 2, context: 2, pipeline: 2, virtual_stages: 2, schedule: interleaved, data: 2, expert: 8, "
     "expert_tensor: 1, sharding: zero1, global_batch: 8, recompute: full"},
    {kBalancedMixtral,
     "tensor: 2, context: 2, context_kind: ulysses, pipeline: 2, data: 2, expert: 4, expert_tensor: 2, sharding: "
     "zero2, global_batch: 4"},
    {kSharedExpert,
     "tensor: 2, context: 2, context_kind: allgather, context_order: contiguous, pipeline: 2, data: 2, expert: 4, "
     "expert_tensor: 1, sharding: fsdp, rank_order: tp-cp-pp-dp, global_batch: 4"},
};
INSTANTIATE_TEST_SUITE_P(Cases, FiveDimensions, testing::ValuesIn(kFiveDimensions));

}  // namespace
}  // namespace orrery
