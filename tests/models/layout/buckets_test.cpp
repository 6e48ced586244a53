#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

using namespace test;

// A table that several lookups read (multi-token prediction) is reduced when all of them have added to its gradient.
TEST(Buckets, WaitForAllThatAddToAWeight) {
  const Plan plan =
      make_plan(spec_of("name: predicts, layers: 4, hidden: 64, heads: 8, feed_forward: 256, vocab: 256, mtp_layers: 2",
                        "pipeline: 2, data: 2, sharding: zero1, global_batch: 4"));
  const RankClass& last = plan.classes.back();
  const auto place = [&](const char* name) {
    TaskId found = kNone;
    for (TaskId t = last.begin; t < last.end; ++t) {
      if (plan.op_of(t).name == name) found = t;
    }
    return found;
  };
  // The last bucket of backward begins with the table: the prediction's block is the first that has weights.
  const TaskId lookup = place("embedding gradient");
  ASSERT_NE(lookup, kNone);
  TaskId of_table = kNone;
  for (TaskId t = last.begin; t < last.end; ++t) {
    const auto* c = std::get_if<Collective>(&plan.op_of(t).work);
    if (c == nullptr || plan.op_of(t).name != "reduce gradients") continue;
    for (const Frame& f : plan.frames) {
      const Block& block = plan.blocks[f.block];
      const bool holds = &plan.classes[f.slot] == &last && !block.parameters.empty() && f.micro_batch == 0 &&
                         block.parameters.front().name == kEmbeddingTable;
      if (holds && c->first <= f.base && f.base < c->first + c->bytes / c->width) of_table = t;
    }
  }
  ASSERT_NE(of_table, kNone);
  EXPECT_GT(of_table, lookup);
}

// No gradient is added to what has been reduced in this step, and replicas reduce a unit once, after all else has.
void expect_reduced_last(const Plan& plan, const std::string& where) {
  struct Piece {
    std::uint32_t state;
    std::int64_t first, elements;
  };
  for (const RankClass& slot : plan.classes) {
    std::vector<Piece> reduced;
    std::set<std::uint32_t> replicated;  // units whose replicas have been reduced
    for (TaskId t = slot.begin; t < slot.end; ++t) {
      const Op& op = plan.op_of(t);
      const std::uint32_t at = plan.tasks[t].frame;
      if (const auto* c = std::get_if<Collective>(&op.work); c != nullptr && op.name == "reduce gradients")
        reduced.push_back({at, c->first, c->bytes / c->width});
      EXPECT_FALSE(op.name == "reduce unit" && replicated.count(at) > 0) << where;
      EXPECT_FALSE(op.name == "reduce replicas" && !replicated.insert(at).second) << where;
      if (op.phase != Phase::backward) continue;
      const Frame& frame = plan.frames[at];
      for (const Operand& o : op.operands) {
        if (o.scope != Scope::state || o.slot != kGradients || o.parameter < 0) continue;
        const std::int64_t element =
            plan.frames[frame.unit].base + plan.blocks[frame.block].parameters[o.parameter].offset;
        for (const Piece& piece : reduced) {
          EXPECT_FALSE(piece.state == frame.state && element >= piece.first && element < piece.first + piece.elements)
              << where << ", " << op.name << " of micro-batch " << frame.micro_batch;
        }
      }
    }
  }
}

TEST(Buckets, AreReducedWhenComplete) {
  for (std::uint64_t seed = 1600; seed < 1700; ++seed)
    expect_reduced_last(make_plan(test::random_spec(seed)), fmt::format("seed {}", seed));
  const auto check = [](const std::string& file, const std::string& more, const std::string& model) {
    const std::string strategy = fmt::format(
        "pipeline: 2, data: 4, bucket_MiB: 0.0001, global_batch: 8, schedule: {{file: {}/tests/data/{}}}, {}",
        ORRERY_SOURCE_DIR, file, more);
    expect_reduced_last(make_plan(test::spec_of(model, strategy)), strategy);
  };
  for (const char* sharding : {"none", "zero1"}) {
    check("order_weights_reversed.txt", fmt::format("sharding: {}", sharding), test::kSmall);
    check("order_v_weights_last.txt", fmt::format("virtual_stages: 2, sharding: {}", sharding),
          std::string(test::kSmall) + ", tied_embeddings: true");
  }
  for (const char* sharding : {"none", "zero1", "zero2", "zero3", "hsdp, shard_group: 2"})
    check("order_reversed.txt", fmt::format("sharding: {}", sharding), test::kSmall);
}

std::int64_t tasks_named(const Plan& plan, const RankClass& slot, std::string_view name) {
  std::int64_t count = 0;
  for (TaskId t = slot.begin; t < slot.end; ++t) count += plan.op_of(t).name == name ? 1 : 0;
  return count;
}

// Megatron-Core reduces only the first chunk of a pipeline bucket by bucket.
TEST(Buckets, OneForEveryChunkButThePipelinesFirst) {
  const std::string strategy = "pipeline: 2, virtual_stages: 2, data: 2, global_batch: 8, bucket_MiB: 0.0001";
  const auto reductions = [&](const char* first, std::size_t stage) {
    const Plan plan =
        make_plan(spec_of(kSmall, strategy, 32, fmt::format("profile: orrery, buckets_on_first_chunk: {}", first)));
    return tasks_named(plan, plan.classes[stage], "reduce gradients");
  };
  EXPECT_GT(reductions("false", 1), 8);
  EXPECT_EQ(reductions("true", 1), 2);
  EXPECT_GT(reductions("true", 0), 3);
  EXPECT_LT(reductions("true", 0), reductions("false", 0));
}

// With one queue a gather is launched when the one before it is needed, not all of them before forward.
TEST(Buckets, AreGatheredOneAheadWithOneQueue) {
  const auto plan_with = [](const char* queue) {
    return make_plan(spec_of(kSmall, "data: 2, sharding: zero1, global_batch: 4, bucket_MiB: 0.0001", 32,
                             fmt::format("profile: orrery, one_queue: {}, overlap_parameter_gather: true", queue)));
  };
  const auto at_once = [](const Plan& plan) {
    TaskId t = 0;
    while (plan.op_of(t).name == "gather parameters") ++t;
    return t;
  };
  const Plan several = plan_with("never"), one = plan_with("always");
  const std::int64_t all = tasks_named(several, several.classes[0], "gather parameters");
  EXPECT_GT(all, 4);
  EXPECT_EQ(at_once(several), all);
  EXPECT_EQ(tasks_named(one, one.classes[0], "gather parameters"), all);
  EXPECT_LT(at_once(one), all);
}

// Megatron-Core: max(40 M, 1 M x data and context ranks) elements; DeepSpeed: 500 M; DistributedDataParallel: 25 MiB.
TEST(Buckets, HoldWhatTheStackCounts) {
  struct Case {
    const char *software, *strategy;
    double bytes;
  };
  for (const Case& c :
       {Case{"megatron-core", "data: 8", 40e6 * 4}, Case{"megatron-core", "data: 64", 64e6 * 4},
        Case{"megatron-core", "data: 64, gradient_precision: bf16", 64e6 * 2},
        Case{"megatron-core", "data: 32, context: 2", 64e6 * 4},
        Case{"megatron-core", "data: 8, overlap: {gradient_reduce: false}", kOneBucket_MiB * 1048576},
        Case{"megatron-core", "data: 8, bucket_MiB: 25", 25 * 1048576.0},
        Case{"megatron-deepspeed-2022", "data: 8, precision: fp16", 5e8 * 2},
        Case{"megatron-lm-2022", "data: 8", kOneBucket_MiB * 1048576}, Case{"nanotron", "data: 64", 25 * 1048576.0},
        Case{"nanotron", "data: 64, sharding: zero1", kOneBucket_MiB * 1048576}}) {
    const Spec spec = parse_spec(fmt::format("model: llama-3.1-8b\nsequence: 4096\nsoftware: {}\n"
                                             "cluster: {{node: dgx-a100, nodes: 8}}\nstrategy: {{{}}}\n",
                                             c.software, c.strategy),
                                 "spec.yaml");
    EXPECT_NEAR(spec.strategy.bucket_MiB * 1048576, c.bytes, 1e-3) << c.software << " " << c.strategy;
  }
}

std::int64_t reductions(const std::string& model, const std::string& bucket) {
  const Plan plan = make_plan(spec_of(model, "data: 2, gradient_precision: fp32, bucket_MiB: " + bucket));
  std::int64_t count = 0;
  for (TaskId t = 0; t < plan.task_count(); ++t) count += plan.op_of(t).name == "reduce gradients" ? 1 : 0;
  return count;
}

// A bucket closes with the first tensor that brings it to 25 MiB, 26,214,400 bytes. A token-embedding table of 26.0 MB
// alone is below that and one of 26.5 MB above, so that the second needs one bucket more.
TEST(Buckets, CloseAtMebibytes) {
  const auto model = [](std::int64_t vocab) {
    return fmt::format("layers: 1, hidden: 64, heads: 4, feed_forward: 64, vocab: {}, tied_embeddings: false", vocab);
  };
  const auto vocab_of = [](double megabytes) { return static_cast<std::int64_t>(megabytes * 1e6 / 4 / 64); };
  EXPECT_EQ(reductions(model(vocab_of(26.5)), "25"), reductions(model(vocab_of(26.0)), "25") + 1);
}

// PyTorch's bucket_cap_mb = 0: each parameter is reduced alone. A bucket beyond the model's size is one for all.
TEST(Buckets, OfNoSizeHoldOneParameterEach) {
  const std::string model = "layers: 2, hidden: 64, heads: 4, feed_forward: 64, vocab: 256, tied_embeddings: false";
  const Plan plan = make_plan(spec_of(model, "data: 2"));
  std::int64_t parameters = 0;
  std::set<std::pair<std::uint32_t, std::int64_t>> seen;
  for (const Frame& f : plan.frames) {
    const bool fresh = !plan.blocks[f.block].parameters.empty() && seen.insert({f.block, f.layer}).second;
    if (fresh) parameters += std::ssize(plan.blocks[f.block].parameters);
  }
  EXPECT_EQ(reductions(model, "0"), parameters);
  EXPECT_EQ(reductions(model, "1000000"), 1);
}

}  // namespace
}  // namespace orrery
