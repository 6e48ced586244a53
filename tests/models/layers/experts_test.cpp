// Plans of layers with experts, against closed forms of all-to-all traffic and expert computation.
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/layers/expert_sizes.h"
#include "models/layout/placement.h"
#include "models/plan/check.h"
#include "models/plan/unfold.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

struct ExpertLayout {
  std::int64_t tensor, data, expert, cut;
  const char* capacity;  // keys of moe
};
constexpr ExpertLayout kExpertLayouts[] = {
    {1, 2, 2, 1, ""},
    {1, 8, 4, 1, ""},
    {2, 4, 4, 1, ""},
    {2, 4, 2, 2, ""},
    {1, 8, 8, 1, ", capacity_factor: 1.25, pad_to_capacity: true"},
    {2, 4, 4, 2, ", capacity_factor: 1, pad_to_capacity: true"},
    {1, 4, 2, 1, ", capacity_factor: 0.5"},
    {1, 8, 2, 1, ", imbalance: 1.5"},
    {4, 2, 8, 1, ", score: sigmoid, correction_bias: true, shared_feed_forward: 64"},
};
constexpr std::int64_t kExpertSequence = 64, kExpertHidden = 64, kTopK = 2, kExperts = 8, kWidth = 32;

Spec spec_for(const ExpertLayout& l, const std::string& more = "") {
  return test::spec_of(
      fmt::format(
          "name: moe, layers: 3, hidden: {}, heads: 8, vocab: 256, feed_forward: 64, moe: {{experts: {}, top_k: "
          "{}, feed_forward: {}, first_layer: 1{}}}",
          kExpertHidden, kExperts, kTopK, kWidth, l.capacity),
      fmt::format(
          "tensor: {}, data: {}, expert: {}, expert_tensor: {}, precision: bf16, global_batch: {}, micro_batch: 1{}",
          l.tensor, l.data, l.expert, l.cut, 2 * l.data, more),
      kExpertSequence);
}

// Bytes moved by the first rank class, which is the busiest.
Bytes moved(const Plan& plan, Dimension group, CollectiveKind kind, const std::string& name) {
  Bytes sum = 0;
  for (TaskId t = 0; t < plan.classes[0].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr && c->group == group && c->kind == kind && plan.op_of(t).name.starts_with(name)) sum += c->bytes;
  }
  return sum;
}

// Two expert layers, two micro-batches, forward and backward, dispatch and combine: each moves rows * hidden elements,
// of which (e - 1) / e leave the rank; rows are k a token, or experts * capacity.
TEST(Experts, AllToAllsMoveTheChosenRows) {
  for (const ExpertLayout& l : kExpertLayouts) {
    SCOPED_TRACE(fmt::format("tensor {} data {} expert {} cut {}{}", l.tensor, l.data, l.expert, l.cut, l.capacity));
    const Spec spec = spec_for(l);
    const Plan plan = make_plan(spec);
    const std::int64_t tokens = kExpertSequence / l.tensor;
    const ExpertSizes s = expert_sizes(spec, 1, tokens);
    if (std::string(l.capacity).find("capacity") == std::string::npos) {
      EXPECT_EQ(s.sent, tokens * kTopK);
    }
    if (s.padded) {
      EXPECT_EQ(s.sent, kExperts * s.capacity);
    }
    const Bytes rows = std::max(s.sent, s.received) * 2 * 2;  // layers, micro-batches
    const auto all_to_all = [&](const char* name) {
      return moved(plan, Dimension::expert, CollectiveKind::all_to_all, name);
    };
    EXPECT_EQ(all_to_all("dispatch") - all_to_all("dispatch weights"), 2 * rows * kExpertHidden * 2);
    EXPECT_EQ(all_to_all("combine"), 2 * rows * kExpertHidden * 2);
    EXPECT_EQ(all_to_all("dispatch weights"), 2 * rows * 4);
    EXPECT_EQ(all_to_all("exchange counts"), s.padded ? 0 : 4 * kExperts * 4);
    const Bytes gathered = l.cut > 1 ? 2 * 2 * 2 * s.gathered() * kExpertHidden * 2 : 0;
    EXPECT_EQ(moved(plan, Dimension::expert_tensor, CollectiveKind::reduce_scatter, "gather tokens") +
                  moved(plan, Dimension::expert_tensor, CollectiveKind::all_gather, "gather tokens"),
              gathered);
  }
}

// The matrix products of experts are those of the busiest rank's rows: 2 * rows * weights forward, twice that backward.
TEST(Experts, ProductsFollowTheBusiestRanksRows) {
  for (const ExpertLayout& l : kExpertLayouts) {
    const Spec spec = spec_for(l);
    const Plan plan = make_plan(spec);
    const ExpertSizes s = expert_sizes(spec, 1, kExpertSequence / l.tensor);
    double flops = 0;
    for (TaskId t = 0; t < plan.classes[0].end; ++t) {
      if (const auto* g = std::get_if<GroupedGemm>(&plan.op_of(t).work)) flops += cost_of(*g, 2).flops;
    }
    const double weights = 3.0 * kExpertHidden * kWidth / static_cast<double>(l.cut);
    EXPECT_DOUBLE_EQ(flops, 4 * 3 * 2 * static_cast<double>(s.gathered()) * weights);
  }
}

// Expert gradients are reduced by separate communicators, so beside the other gradients; the update waits for both.
TEST(Experts, GradientsAreReducedOnALaneOfTheirOwn) {
  for (const ExpertLayout& l : kExpertLayouts) {
    const Plan plan = make_plan(spec_for(l, ", sharding: zero1, bucket_MiB: 1000000"));
    TaskId update = kNone;
    std::map<LaneKind, TaskId> last;
    for (TaskId t = 0; t < plan.classes[0].end; ++t) {
      const Op& op = plan.op_of(t);
      if (std::holds_alternative<Update>(op.work) && update == kNone) update = t;
      if (!reduces_gradients(op.lane)) continue;
      const bool experts = std::get<Collective>(op.work).group == Dimension::expert_data;
      EXPECT_EQ(op.lane, experts ? LaneKind::expert_reduce : LaneKind::data_reduce);
      last[op.lane] = t;
    }
    ASSERT_NE(update, kNone);
    for (const auto& [lane, t] : last) {
      const auto waits = [&, reduced = t](TaskId by) {
        const auto before = plan.dependencies_of(by);
        return std::find(before.begin(), before.end(), reduced) != before.end();
      };
      bool waited = false;
      for (TaskId by = t + 1; by <= update; ++by)
        waited = waited || (plan.op_of(by).lane == LaneKind::compute && waits(by));
      EXPECT_TRUE(waited) << name_of(lane);
    }
    EXPECT_EQ(last.count(LaneKind::expert_reduce), l.tensor * l.data > l.expert * l.cut ? 1U : 0U);
  }
}

// If a stack waits for each reduction, expert gradients and the other gradients are reduced one after the other.
TEST(Experts, GradientsTakeTurnsWhereNothingOverlaps) {
  for (const char* overlap : {"true", "false"}) {
    const Plan plan = make_plan(spec_for({1, 4, 2, 1, ""}, fmt::format(", overlap: {{gradient_reduce: {}}}", overlap)));
    const bool apart =
        std::any_of(plan.ops.begin(), plan.ops.end(), [](const Op& op) { return op.lane == LaneKind::expert_reduce; });
    EXPECT_EQ(apart, std::string(overlap) == "true");
  }
}

// Optimizer states of experts are divided over the ranks that hold them, the others over all data-parallel ranks.
TEST(Experts, StatesAreCutOverTheRanksThatHoldThem) {
  for (const ExpertLayout& l : kExpertLayouts) {
    for (const char* sharding : {"none", "zero1", "zero2", "zero3", "fsdp"}) {
      SCOPED_TRACE(sharding);
      const Plan plan = make_plan(spec_for(l, fmt::format(", sharding: {}, bucket_MiB: 1000000", sharding)));
      const std::int64_t copies = l.tensor * l.data / (l.expert * l.cut);
      const auto size = [&](Dimension d) {
        return static_cast<std::int64_t>(plan.dimensions[static_cast<std::size_t>(d)].groups.front().size());
      };
      EXPECT_EQ(size(Dimension::expert), l.expert);
      EXPECT_EQ(size(Dimension::expert_tensor), l.cut);
      EXPECT_EQ(size(Dimension::expert_data), copies);
      std::int64_t experts = 0, all = 0;
      for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) {
        all += p.local.out * p.local.in;
        experts += p.local.experts > 0 ? p.local.out * p.local.in : 0;
      }
      EXPECT_EQ(experts, 2 * kExperts / l.expert * 3 * kExpertHidden * kWidth / l.cut);
      std::int64_t own = 0;
      for (const Piece& piece : pieces_of(plan, states_of(plan, 0)[0], 0)) own += piece.owned;
      const bool cut = std::string(sharding) != "none";
      const std::int64_t expected = cut ? (all - experts) / l.data + experts / copies : all;
      EXPECT_NEAR(static_cast<double>(own), static_cast<double>(expected), 16.0);
    }
  }
}

TEST(Experts, EveryRankOfAGroupMeets) {
  for (const ExpertLayout& l : kExpertLayouts) EXPECT_NO_THROW(check_plan(unfold(make_plan(spec_for(l)))));
}

// Uneven load: the busiest rank of a stage is a class by itself, and its rows are those that the other ranks do not
// get.
TEST(Experts, BusyRanksStandApart) {
  const ExpertLayout uneven = {2, 4, 4, 1, ", imbalance: 1.5"};
  const Plan plan = make_plan(spec_for(uneven));
  ASSERT_EQ(plan.classes.size(), 2U);
  EXPECT_EQ(plan.classes[0].multiplicity, 2);
  EXPECT_EQ(plan.classes[1].multiplicity, 6);
  const auto rows = [&](std::uint32_t slot) {
    std::int64_t sum = 0;
    for (TaskId t = plan.classes[slot].begin; t < plan.classes[slot].end; ++t) {
      const auto* g = std::get_if<GroupedGemm>(&plan.op_of(t).work);
      if (g != nullptr && g->role == Gemm::Role::output) sum += g->rows;
    }
    return sum;
  };
  const std::int64_t sent = kExpertSequence / 2 * kTopK * 2 * 2 * 2;  // both products, two layers, two micro-batches
  EXPECT_EQ(rows(0), sent * 3 / 2);
  EXPECT_NEAR(static_cast<double>(rows(0) + 3 * rows(1)), static_cast<double>(4 * sent), 8.0);  // rounded 8 times
  EXPECT_NO_THROW(check_plan(unfold(plan)));
}

// A multi-token-prediction module has the ops of a layer, and its rows are added to those of the output layer.
TEST(Experts, PredictionModulesStandBeforeTheOutput) {
  Spec spec = spec_for(kExpertLayouts[0]);
  spec.model.mtp_layers = 1;
  const Plan plan = make_plan(spec);
  double logits = 0, attention = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) {
    const Op& op = plan.op_of(t);
    if (op.name == "logits") logits += cost_of(op.work, 2).flops;
    if (op.name == "attention") ++attention;
  }
  EXPECT_DOUBLE_EQ(logits, 2 * 2.0 * 2 * kExpertSequence * kExpertHidden * 256);
  EXPECT_EQ(attention, 2 * (3 + 1));
}

TEST(Experts, SharedExpertsRunWhileTokensAreOnTheirWay) {
  const Plan plan = make_plan(spec_for(kExpertLayouts[8], ", overlap: {expert: true}"));
  const Block& layer =
      *std::find_if(plan.blocks.begin(), plan.blocks.end(), [](const Block& b) { return !b.runtime_sizes.empty(); });
  const auto at = [&](const char* name) {
    return std::find_if(layer.forward.begin(), layer.forward.end(),
                        [&](std::uint32_t op) { return plan.ops[op].name == name; }) -
           layer.forward.begin();
  };
  EXPECT_LT(at("dispatch"), at("shared experts up"));
  EXPECT_LT(at("shared experts down"), at("experts up"));
}

TEST(Experts, WhatIsNotBuiltIsRefused) {
  const auto refused = [](const std::string& strategy) {
    EXPECT_THROW(make_plan(spec_for({2, 4, 2, 1, ""}, strategy)), Error) << strategy;
  };
  refused(", sequence_parallel: false");
  // The ranks that share shards would not hold every expert.
  EXPECT_THROW(spec_for({2, 4, 4, 1, ""}, ", sharding: hsdp, shard_group: 1"), Error);
}

// Each of two ranks is a class by itself: they meet in every group, as if unfolded.
TEST(Experts, TwoRanksMayBeUneven) {
  for (const char* more : {"", ", sharding: zero1", ", sharding: fsdp"}) {
    const Plan plan = make_plan(spec_for({1, 2, 2, 1, ", imbalance: 1.5"}, more));
    EXPECT_EQ(plan.classes.size(), 2U);
    EXPECT_EQ(unfold(plan).matches.size(), plan.matches.size()) << more;
  }
}

// Hybrid sharding: experts are cut over the ranks that share shards, which together hold the same experts; the replicas
// of a shard are reduced over the sets, after the last micro-batch and apart from other weights, whose shards lie on
// other ranks.
TEST(Experts, ShardsHaveReplicas) {
  const Plan plan = make_plan(spec_for({2, 4, 2, 1, ""}, ", sharding: hsdp, shard_group: 2"));
  std::map<std::pair<Dimension, CollectiveKind>, std::int64_t> elements;
  for (TaskId t = plan.classes[0].begin; t < plan.classes[0].end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c != nullptr) elements[{c->group, c->kind}] += c->bytes / c->width;
  }
  const std::int64_t experts = elements.at({Dimension::expert_data, CollectiveKind::reduce_scatter}) / 2;
  const std::int64_t others = elements.at({Dimension::data, CollectiveKind::reduce_scatter}) / 2;
  EXPECT_EQ((elements.at({Dimension::expert_replicate, CollectiveKind::all_reduce})), experts / 2);
  EXPECT_EQ((elements.at({Dimension::replicate, CollectiveKind::all_reduce})), others / 2);
  EXPECT_EQ((elements.at({Dimension::expert_data, CollectiveKind::all_gather})), 2 * 2 * experts);
}

// Shared experts may have a gate (Qwen1.5-MoE): one output column scales their result, for every token.
TEST(Experts, SharedOnesMayBeGated) {
  const ExpertLayout layout = {2, 2, 2, 1, ", shared_feed_forward: 64, shared_gate: true"};
  const Plan plan = make_plan(spec_for(layout));
  int gates = 0, weights = 0;
  for (const Op& op : plan.ops) {
    const auto* g = std::get_if<SigmoidGate>(&op.work);
    if (g == nullptr) continue;
    ++gates;
    EXPECT_EQ(g->rows, kExpertSequence / 2);
    EXPECT_EQ(g->columns, kExpertHidden);
  }
  EXPECT_EQ(gates, 2);  // forward and backward of the one kind of layer with experts
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) {
    if (!p.name.ends_with("moe.shared_gate.weight")) continue;
    ++weights;
    EXPECT_EQ(p.local.out * p.local.in, kExpertHidden);
    EXPECT_TRUE(p.local.partial);
  }
  EXPECT_EQ(weights, 2);
}

// Every expert has its own biases, which its rows read and add gradients to; the biases of the dense layer are not left
// in place.
TEST(Experts, HaveTheirBiases) {
  ExpertLayout layout = {1, 4, 2, 1, ""};
  Spec spec = spec_for(layout);
  spec.model.bias = true;
  const Plan plan = make_plan(spec);
  std::int64_t up = 0, down = 0;
  for (const PlacedParameter& p : parameters_of(plan, states_of(plan, 0)[0])) {
    const std::int64_t elements = p.local.out * p.local.in;
    if (p.name.ends_with("moe.experts.up.bias")) up += elements;
    if (p.name.ends_with("moe.experts.down.bias")) down += elements;
    EXPECT_FALSE(p.name == "layer 1 mlp.down.bias" || p.name == "layer 2 mlp.down.bias") << p.name;
  }
  EXPECT_EQ(up, 2 * kExperts / 2 * 2 * kWidth);
  EXPECT_EQ(down, 2 * kExperts / 2 * kExpertHidden);
  for (const Op& op : plan.ops) {
    const auto* b = std::get_if<GroupedBias>(&op.work);
    if (b == nullptr) continue;
    EXPECT_EQ(b->groups, kExperts / 2);
    EXPECT_EQ(b->weighted, b->columns == kExpertHidden && op.name.starts_with("experts.down"));
  }
  layout.cut = 2;
  spec = spec_for(layout);
  spec.model.bias = true;
  const Plan cut = make_plan(spec);
  const std::int64_t whole_up = up, whole_down = down;
  up = down = 0;
  for (const PlacedParameter& p : parameters_of(cut, states_of(cut, 0)[0])) {
    up += p.name.ends_with("moe.experts.up.bias") ? p.local.out : 0;
    down += p.name.ends_with("moe.experts.down.bias") ? p.local.out : 0;
  }
  EXPECT_EQ(up, whole_up / 2);
  EXPECT_EQ(down, whole_down);
}

// The ops of a layer with experts on Blackwell: the names of those that take no time, and whether products are one
// kernel.
struct Within {
  std::set<std::string> names;
  int one_kernel = 0;
  std::int64_t distinct = 0;
  bool pads = false;
};

Within within(const std::string& moe, const std::string& software, const std::string& precision) {
  const Plan plan = make_plan(parse_spec(
      fmt::format(
          "model: {{name: moe, layers: 1, hidden: 64, heads: 8, vocab: 256, feed_forward: 64, moe: {{experts: 8, "
          "top_k: 2, feed_forward: 64{}}}}}\nsequence: 64\ncluster: {{node: dgx-b200, nodes: 1}}\nsoftware: "
          "{{profile: orrery{}}}\nstrategy: {{data: 4, expert: 4, global_batch: 4, precision: {}}}\n",
          moe, software, precision),
      "test"));
  Within w;
  for (const Op& op : plan.ops) {
    if (op.within) w.names.insert(op.name);
    if (const auto* g = std::get_if<GroupedGemm>(&op.work)) w.one_kernel += g->one_kernel;
    if (const auto* s = std::get_if<SortChunks>(&op.work)) {
      w.distinct = s->distinct;
      w.pads = s->pads;
      EXPECT_LT(s->distinct, s->rows);
    }
  }
  return w;
}

// DeepEP and HybridEP, where they exchange tokens, pick a token's copies and sum them: the sender has no copies to
// make, and the receiver copies from distinct tokens, padded where products in 8 bits need it.
TEST(Experts, ADispatchByNodesPicksAndSumsItsTokens) {
  const Within flat = within("", "", "mxfp8"), nodes = within(", dispatch: hierarchical", "", "mxfp8");
  EXPECT_TRUE(flat.names.empty());
  EXPECT_EQ(flat.distinct, 0);
  EXPECT_TRUE(flat.pads);
  EXPECT_FALSE(within("", "", "bf16").pads);
  EXPECT_EQ(nodes.names, (std::set<std::string>{"permute", "permute gradient", "unpermute", "unpermute gradient"}));
  EXPECT_GT(nodes.distinct, 0);
  EXPECT_FALSE(nodes.pads);
}

// Transformer Engine's fused grouped MLP is one kernel a product, with the activation and the casts between products.
TEST(Experts, FusedExpertsAreOneKernelAProduct) {
  const Within fused = within("", ", fused_experts: true", "mxfp8");
  EXPECT_EQ(fused.names, (std::set<std::string>{"experts activation", "experts activation gradient",
                                                "experts down input to fp8", "experts up gradient to fp8"}));
  EXPECT_EQ(fused.one_kernel, 6);
  EXPECT_EQ(within("", ", fused_experts: true", "fp8").one_kernel, 0);
  EXPECT_EQ(within("", "", "mxfp8").one_kernel, 0);
}

}  // namespace
}  // namespace orrery
