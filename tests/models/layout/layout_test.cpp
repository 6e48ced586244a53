// The blocks of a stage, and the buckets of its gradients.
#include <gtest/gtest.h>

#include "models/layout/placement.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

// Layers of one stage whose block recomputes, by layer; each layer once.
std::map<std::int32_t, bool> recomputed(const Plan& plan, std::uint32_t slot) {
  std::map<std::int32_t, bool> result;
  for (const Frame& f : plan.frames) {
    const Block& block = plan.blocks[f.block];
    if (f.slot == slot && block.role == BlockRole::layer) result[f.layer] = block.name == "layer, recomputed";
  }
  return result;
}

// recompute_layers counts over all chunks of a stage, from its first layer.
TEST(Layout, RecomputesTheFirstLayersOfAStage) {
  for (const int layers : {0, 1, 3, 4, 8}) {
    const Plan plan = make_plan(test::spec_of(
        test::kSmall,
        fmt::format("pipeline: 2, virtual_stages: 2, global_batch: 4, recompute: full, recompute_layers: {}", layers)));
    for (std::uint32_t slot = 0; slot < 2; ++slot) {
      int index = 0;
      const auto stage = recomputed(plan, slot);
      EXPECT_EQ(stage.size(), 4U);
      for (const auto& [layer, again] : stage) EXPECT_EQ(again, index++ < layers) << slot << " " << layer;
    }
  }
}

TEST(Layout, UnevenStages) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "pipeline: 3, stage_layers: [0, 7, 1], global_batch: 3"));
  EXPECT_EQ(recomputed(plan, 0).size(), 0U);
  EXPECT_EQ(recomputed(plan, 1).size(), 7U);
  EXPECT_EQ(recomputed(plan, 2).size(), 1U);
}

// Buckets cover the flat gradient buffer once, from its end to its start, and hold at least what the limit says but for
// the last.
TEST(Layout, BucketsCoverTheGradients) {
  for (const double limit : {0.0, 0.05, 0.3, 25.0}) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, fmt::format("data: 2, bucket_MiB: {}", limit)));
    const std::int64_t all = parameter_count(test::spec_of(test::kSmall, "").model, 0);
    std::int64_t end = all;
    int buckets = 0;
    for (TaskId t = 0; t < plan.task_count(); ++t) {
      const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
      if (c == nullptr || c->group != Dimension::data) continue;
      EXPECT_EQ(c->first + c->bytes / c->width, end);
      end = c->first;
      if (end > 0) {
        EXPECT_GE(static_cast<double>(c->bytes), limit * 1048576);
      }
      ++buckets;
    }
    EXPECT_EQ(end, 0);
    EXPECT_EQ(buckets == 1, limit == 25);
  }
}

// With eight-bit parameters a rank holds a layer's matrices and their transposes in one byte each, and no wider copy.
TEST(Layout, EightBitMatricesAlone) {
  const auto bytes = [](const char* software) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, "precision: fp8", 32, software));
    std::map<std::string, Bytes> result;
    for (const Block& block : plan.blocks) {
      if (block.role != BlockRole::state) continue;
      for (const BlockBuffer& s : block.buffers) result[s.name] += s.bytes;
    }
    return result;
  };
  auto both = bytes("profile: megatron-core, gathers_eight_bit: false");
  auto alone = bytes("profile: megatron-core, gathers_eight_bit: true");
  EXPECT_EQ(both["fp8 weights"], alone["fp8 weights"]);
  EXPECT_EQ(both["parameters"] - alone["parameters"], alone["fp8 weights"]);  // two bytes per element either way
  EXPECT_GT(alone["parameters"], 0);
}

Bytes held(const std::string& strategy, const std::string& software, StateSlot slot, std::size_t nth = 0) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, strategy, 32, software));
  for (const Block& block : plan.blocks) {
    if (block.role == BlockRole::state && nth-- == 0) return block.buffers[slot].bytes;
  }
  return -1;
}

// DeepSpeed's first bf16 optimizer holds all master weights on every rank; with fp16 a rank holds only its part.
TEST(Layout, MasterWeightsMayStayWhole) {
  const std::string software = "profile: orrery, whole_master: bf16", sharded = "data: 4, sharding: zero1, ";
  const Bytes part = held(sharded, software, kMaster),
              all = parameter_count(test::spec_of(test::kSmall, "").model, 0) * 4;
  EXPECT_LT(part, all / 3);
  EXPECT_EQ(part + held(sharded, software, kOthersMaster), all);
  EXPECT_EQ(held(sharded + "precision: fp16", software, kOthersMaster), 0);
  EXPECT_EQ(held(sharded, "profile: orrery", kOthersMaster), 0);
}

// nanotron keeps DistributedDataParallel's buckets beside its fp32 sums, but not where states are sharded.
TEST(Layout, BucketsBesideWiderSums) {
  const Bytes weights = parameter_count(test::spec_of(test::kSmall, "").model, 0) * 2;
  EXPECT_EQ(held("data: 4", "profile: nanotron", kBuckets), weights);
  EXPECT_EQ(held("data: 4, sharding: zero1", "profile: nanotron", kBuckets), 0);
  EXPECT_EQ(held("data: 1", "profile: nanotron", kBuckets), 0);
}

// FSDP keeps what it reduced in bf16 as wide as the fp32 shard.
TEST(Layout, GradientShardsMayBeWidened) {
  const std::string software = "profile: orrery, widens_gradient_shards: true", sharded = "data: 4, sharding: fsdp, ";
  const Bytes reduced = held(sharded + "gradient_precision: bf16", software, kGradientShard);
  EXPECT_GT(reduced, 0);
  EXPECT_EQ(held(sharded + "gradient_precision: bf16", software, kWidenedShard), reduced);
  EXPECT_EQ(held(sharded + "gradient_precision: fp32", software, kWidenedShard), 0);
}

// Dummy gradients: one 16-bit tensor for each shape of the layers' matrices, for any number of layers and chunks.
TEST(Layout, DummyGradientsAreKeptByShape) {
  const Bytes shapes = 2 * (192 * 64 + 64 * 64 + 512 * 64 + 64 * 256);
  const std::string software = "profile: orrery, dummy_gradients: true";
  EXPECT_EQ(held("data: 2", software, kDummyGradients), shapes);
  const std::string chunks = "pipeline: 2, virtual_stages: 2, global_batch: 4";
  EXPECT_EQ(held(chunks, software, kDummyGradients), shapes);
  EXPECT_EQ(held(chunks, software, kDummyGradients, 1), 0);
  EXPECT_EQ(held("data: 2, sharding: fsdp", software, kDummyGradients), 0);
}

// Shapes of dummy gradients that only occur in layers of a later chunk are counted too.
TEST(Layout, DummyGradientsAreThoseOfAllChunks) {
  const std::string model =
      std::string(test::kSmall) + ", moe: {experts: 4, top_k: 2, feed_forward: 128, first_layer: 4}";
  const Plan plan = make_plan(test::spec_of(model, "pipeline: 2, virtual_stages: 2, global_batch: 4", 32,
                                            "profile: orrery, dummy_gradients: true"));
  const auto held = [&](std::uint32_t state) {
    return plan.blocks[plan.frames[state].block].buffers[kDummyGradients].bytes;
  };
  const auto states = states_of(plan, 0);
  EXPECT_EQ(held(states[0]), 2 * (192 * 64 + 64 * 64 + 512 * 64 + 64 * 256));
  EXPECT_EQ(held(states[1]), 2 * (256 * 64 + 64 * 128 + 4 * 64));  // up, down, router
}

// Number of a plan's ops whose name ends in `end`.
int ops_named(const Plan& plan, std::string_view end) {
  return static_cast<int>(
      std::count_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.name.ends_with(end); }));
}

// Backward casts inputs again if forward keeps no transposed copy of them.
TEST(Layout, EightBitInputsMayBeCastAgain) {
  const auto plan = [](const char* again) {
    return make_plan(test::spec_of(test::kSmall, "precision: fp8, sharding: fsdp, data: 2", 32,
                                   fmt::format("profile: orrery, casts_again: {}", again)));
  };
  const Plan kept = plan("false"), again = plan("true");
  EXPECT_EQ(ops_named(kept, "input again to fp8"), 0);
  EXPECT_EQ(ops_named(again, "input again to fp8"), 4);  // qkv, attention output, up, down
  EXPECT_EQ(ops_named(again, "input to fp8"), ops_named(kept, "input to fp8"));
}

// The input of an activation function that is recomputed in backward may be kept in eight bits: half of the bytes, and
// one more cast.
TEST(Layout, ActivationsMayReadEightBits) {
  const auto kept = [](const char* eight_bit, const char* recompute) {
    const Plan plan =
        make_plan(test::spec_of(test::kSmall, fmt::format("precision: fp8, recompute: [{}]", recompute), 32,
                                fmt::format("profile: orrery, fp8_activation_inputs: {}", eight_bit)));
    Bytes bytes = 0;
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& slot : block.buffers) bytes += slot.name == "activation input in fp8" ? slot.bytes : 0;
    }
    return std::pair(ops_named(plan, "activation input to fp8"), bytes);
  };
  EXPECT_EQ(kept("true", "activation"), std::pair(1, Bytes{32 * 2 * 256}));
  EXPECT_EQ(kept("false", "activation"), std::pair(0, Bytes{0}));
  EXPECT_EQ(kept("true", "norm"), std::pair(0, Bytes{0}));
}

// A cast from 16 bits to 12 or back moves three and a half bytes per element, reads and writes together.
TEST(Layout, CastsToTwelveBitsMoveTwelve) {
  const Plan plan = make_plan(test::spec_of(test::kSmall, "tensor: 1, global_batch: 1, precision: fp8", 32,
                                            "profile: orrery, packs_attention_output: true"));
  double elements = 0;
  int casts = 0;
  for (const Op& op : plan.ops) {
    if (const auto* a = std::get_if<FlashAttention>(&op.work); a != nullptr && a->direction == Direction::forward)
      elements = static_cast<double>(a->batch * a->query * a->heads * a->value_dim);
    const auto* cast = std::get_if<Cast>(&op.work);
    if (cast == nullptr || op.name.find("12 bits") == std::string::npos) continue;
    EXPECT_DOUBLE_EQ(cost_of(*cast, 2).bytes, 3.5 * elements) << op.name;
    ++casts;
  }
  EXPECT_GE(casts, 2);
}

// The output of attention may be kept in 12 bits, once for attention's gradient and for the product after it: neither
// 16 nor 8 bits of the output live from forward to backward.
TEST(Layout, AttentionMayBeKeptInTwelveBits) {
  const auto kept = [](const char* packs, const char* recompute) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, fmt::format("precision: fp8, recompute: [{}]", recompute),
                                              32, fmt::format("profile: orrery, packs_attention_output: {}", packs)));
    Bytes bytes = 0;
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& slot : block.buffers)
        bytes += slot.name == "attention values in 12 bits" ? slot.bytes : 0;
    }
    return std::tuple(bytes, ops_named(plan, "attention values from 12 bits again"),
                      ops_named(plan, "attention output input again to fp8"));
  };
  EXPECT_EQ(kept("true", "norm"), std::tuple(Bytes{32 * 64 * 3 / 2}, 1, 1));
  EXPECT_EQ(kept("false", "norm"), std::tuple(Bytes{0}, 0, 0));
  EXPECT_EQ(kept("true", "attention"), std::tuple(Bytes{0}, 0, 0));
}

// A loss over tensor ranks may be a longer chain of kernels than a fused one.
TEST(Layout, LossOverTensorRanksWritesMore) {
  const auto copies = [](int tensor) {
    const Plan plan = make_plan(test::spec_of(test::kSmall, fmt::format("tensor: {}", tensor), 32,
                                              "profile: orrery, fused_cross_entropy: false, loss_gradient_copies: 2, "
                                              "loss_parallel_copies: 1"));
    int count = 0;
    for (const Block& block : plan.blocks) {
      for (const BlockBuffer& slot : block.buffers) count += slot.name == "log-probabilities' gradient" ? 1 : 0;
    }
    return count;
  };
  EXPECT_EQ(copies(1), 2);
  EXPECT_EQ(copies(2), 3);
}

// Logits that a training loop keeps are there while the loss's gradient is made, else they are given up before.
TEST(Layout, LogitsMayBeKeptForTheLossesBackward) {
  const auto readers = [](const char* keeps) {
    const Plan plan =
        make_plan(test::spec_of(test::kSmall, "data: 1", 32,
                                fmt::format("profile: orrery, fused_cross_entropy: false, keeps_logits: {}", keeps)));
    int count = 0;
    for (TaskId t = plan.classes.front().begin; t < plan.classes.front().end; ++t) {
      const Op& op = plan.op_of(t);
      if (op.name != "loss gradient") continue;
      const Block& block = plan.blocks[plan.frames[plan.tasks[t].frame].block];
      count += static_cast<int>(std::count_if(op.operands.begin(), op.operands.end(), [&](const Operand& o) {
        return o.scope == Scope::own && block.buffers[o.slot].name == "shifted logits";
      }));
    }
    return count;
  };
  EXPECT_EQ(readers("false"), 0);
  EXPECT_GE(readers("true"), 1);
}

}  // namespace
}  // namespace orrery
