#include "models/layers/lora.h"

#include <map>

#include <gtest/gtest.h>

#include "models/planner/make_plan.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Spec with(const std::string& model, const std::string& strategy = "") {
  return test::spec_of(std::string(test::kSmall) + model, strategy + (strategy.empty() ? "" : ", ") + "clip: 0");
}

// FLOPs of the products of layers, by layer, of one micro-batch on one rank.
std::map<std::int32_t, double> product_flops(const Plan& plan) {
  std::map<std::int32_t, double> flops;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Frame& f = plan.frames[plan.tasks[t].frame];
    const auto* g = std::get_if<Gemm>(&plan.op_of(t).work);
    if (g != nullptr && f.micro_batch == 0) flops[f.layer] += cost_of(*g, 2).flops;
  }
  return flops;
}

constexpr std::int64_t kModelHidden = 64, kQkv = 3 * 64, kUp = 2 * 256, kDown = 256;
constexpr std::int64_t kMatrices =
    kModelHidden * kQkv + kModelHidden * kModelHidden + kModelHidden * kUp + kDown * kModelHidden;
constexpr std::int64_t kEnds = (kModelHidden + kQkv) + 2 * kModelHidden + (kModelHidden + kUp) + (kDown + kModelHidden);

// 4 FLOPs a parameter and token for what is frozen (forward and the input's gradient), 6 for adapters; the first
// layer's qkv has no input gradient: neither of the frozen weight nor of A.
TEST(Lora, FlopsAreThoseOfTheIdentity) {
  const std::int64_t rank = 4, tokens = 32;
  const Plan plan = make_plan(with(", lora: {rank: 4}"));
  const auto flops = product_flops(plan);
  const double layer = static_cast<double>(tokens * (4 * kMatrices + 6 * rank * kEnds));
  for (std::int32_t l = 1; l < 8; ++l) EXPECT_DOUBLE_EQ(flops.at(l), layer) << l;
  EXPECT_DOUBLE_EQ(flops.at(0), layer - static_cast<double>(tokens * 2 * (kModelHidden * kQkv + rank * kModelHidden)));
  EXPECT_DOUBLE_EQ(flops.at(8), static_cast<double>(tokens * 4 * 256 * kModelHidden));
  const auto whole = product_flops(make_plan(with("")));
  EXPECT_DOUBLE_EQ(whole.at(3), static_cast<double>(tokens * 6 * kMatrices));
}

// Below the first adapter there is no backward: with adapters of MLPs alone not even that of the first attention.
TEST(Lora, NothingRunsBackBelowTheFirstAdapter) {
  const Plan plan = make_plan(with(", lora: {rank: 4, targets: [mlp]}"));
  int attention = 0, embedding = 0;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const Frame& f = plan.frames[plan.tasks[t].frame];
    const Op& op = plan.op_of(t);
    const auto* a = std::get_if<FlashAttention>(&op.work);
    attention += a != nullptr && a->direction == Direction::backward && f.layer == 0 ? 1 : 0;
    embedding += op.phase == Phase::backward && f.layer == -1 ? 1 : 0;
  }
  EXPECT_EQ(attention, 0);
  EXPECT_EQ(embedding, 0);
}

// States, gradients and reductions are those of the adapters alone; frozen weights keep their two bytes, or 4.127 bits.
TEST(Lora, StatesAreThoseOfAdapters) {
  const std::int64_t adapters = 8 * 4 * kEnds;
  const std::int64_t frozen = parameter_count(with("").model, 32);
  const auto bytes = [](const Plan& plan, std::uint16_t slot) {
    Bytes sum = 0;
    for (const Frame& f : plan.frames) {
      const Block& b = plan.blocks[f.block];
      if (b.role == BlockRole::state) sum += b.buffers[slot].bytes;
    }
    return sum;
  };
  const Plan plan = make_plan(with(", lora: {rank: 4}", "data: 2, global_batch: 4"));
  EXPECT_EQ(bytes(plan, kParameters), 2 * adapters);
  EXPECT_EQ(bytes(plan, kGradients), 4 * adapters);
  EXPECT_EQ(bytes(plan, kMaster), 4 * adapters);
  EXPECT_EQ(bytes(plan, kMoment1) + bytes(plan, kMoment2), 8 * adapters);
  EXPECT_EQ(bytes(plan, kFrozen), 2 * frozen);
  EXPECT_EQ(test::elements_moved(plan, 0, Dimension::data, CollectiveKind::all_reduce), adapters);
  const Plan narrow = make_plan(with(", lora: {rank: 4, weights: nf4}"));
  Bytes matrices = 0;
  for (const std::int64_t n :
       {kModelHidden * kQkv, kModelHidden * kModelHidden, kModelHidden * kUp, kDown * kModelHidden})
    matrices += 8 * nf4_bytes(n);
  EXPECT_EQ(bytes(narrow, kFrozen), matrices + 2 * (frozen - 8 * kMatrices));
}

// Gathers of ZeRO-3 move what is frozen in forward and, but for blocks without backward, again; reductions do not.
TEST(Lora, ShardsGatherWhatIsFrozen) {
  const std::int64_t adapters = 8 * 4 * kEnds, frozen = parameter_count(with("").model, 32);
  const Plan plan = make_plan(with(", lora: {rank: 4}", "data: 4, sharding: zero3, global_batch: 8"));
  EXPECT_EQ(test::elements_moved(plan, 0, Dimension::data, CollectiveKind::reduce_scatter), 2 * adapters);
  EXPECT_EQ(test::elements_moved(plan, 0, Dimension::data, CollectiveKind::all_gather),
            2 * (2 * adapters + 2 * frozen - 256 * kModelHidden));
}

// Tensor ranks reduce no more activations than without adapters.
TEST(Lora, TensorRanksReduceNothingMore) {
  const auto moved = [](const std::string& model, const std::string& strategy) {
    const Plan plan = make_plan(with(model, strategy));
    Bytes sum = 0;
    for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      const std::int32_t layer = plan.frames[plan.tasks[t].frame].layer;  // 8: the head, which is frozen
      const bool layers = layer > 0 && layer < 8 && plan.op_of(t).phase != Phase::step;
      if (c != nullptr && c->group == Dimension::tensor && layers) sum += c->bytes;
    }
    return sum;
  };
  for (const char* strategy : {"tensor: 4", "tensor: 4, sequence_parallel: false"})
    EXPECT_EQ(moved(", lora: {rank: 4}", strategy), moved("", strategy)) << strategy;
}

}  // namespace
}  // namespace orrery
