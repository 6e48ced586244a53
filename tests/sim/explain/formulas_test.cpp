#include "sim/explain/formulas.h"

#include <gtest/gtest.h>

#include "models/base/error.h"

#include "models/schedule/schedules.h"

#include <fmt/format.h>

#include "models/spec/sharding.h"
#include "sim/predict/predict.h"

#include "models/load/load_spec.h"
#include "tests/models/play_orders.h"

namespace orrery {
namespace {

Spec spec_of(const std::vector<std::string>& overrides) {
  return parse_spec("{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, strategy: {global_batch: 16}}",
                    "spec.yaml", overrides);
}

// Techniques of section "Data parallelism" of Rajbhandari et al. and Zhao et al.: the formula is what the plan does.
TEST(Formulas, StatesAreWhatThePlanHolds) {
  for (const ShardingRow& row : sharding_rows()) {
    for (const std::string layout : {"strategy.tensor=1", "strategy.tensor=2", "strategy.pipeline=2"}) {
      if ((row.master || row.servers) && layout != "strategy.tensor=1") continue;  // not built
      const Spec spec = spec_of({fmt::format("strategy.sharding={}", row.name), layout,
                                 row.hybrid ? "strategy.shard_group=2" : "strategy.shard_group=null"});
      const Prediction p = predict(spec);
      const StateFormula f = state_formula(spec, p.plan);
      for (std::size_t s = 0; s < p.plan.classes.size(); ++s) {
        const auto formula = of_slot(f, p.plan, s).bytes(static_cast<double>(elements_of(p.plan, s)));
        // Shards are rounded up to whole elements.
        EXPECT_NEAR(formula, static_cast<double>(states_in_plan(p.plan, s)), 100) << row.name << ' ' << layout;
      }
    }
  }
}

// A stack that keeps whole masters keeps none where the shard of the parameters is the master.
TEST(Formulas, WholeMastersLieBesideNarrowerShardsAlone) {
  for (const char* sharding : {"zero1", "zero3", "fsdp"}) {
    const Spec spec = spec_of(
        {"software=megatron-deepspeed-2022", "strategy.precision=bf16", fmt::format("strategy.sharding={}", sharding)});
    const Prediction p = predict(spec);
    const double formula =
        state_formula(spec, p.plan).bytes(static_cast<double>(elements_of(p.plan, 0, Dimension::data)));
    EXPECT_NEAR(formula, static_cast<double>(states_in_plan(p.plan, 0)), 100) << sharding;
  }
}

// Sums of gradients that wait for the last micro-batch (no_sync) have the reduction's precision, reduced shards that of
// the parameters' shards.
TEST(Formulas, WaitingGradientsAreNotWidened) {
  for (const char* sharding : {"fsdp", "fsdp-grad-op"}) {
    const Spec spec = spec_of({"software=pytorch-fsdp", "strategy.no_sync=true", "strategy.gradient_precision=bf16",
                               fmt::format("strategy.sharding={}", sharding)});
    const Prediction p = predict(spec);
    const double formula = state_formula(spec, p.plan).bytes(static_cast<double>(elements_of(p.plan, 0)));
    EXPECT_NEAR(formula, static_cast<double>(states_in_plan(p.plan, 0)), 100) << sharding;
  }
}

// Frozen weights in NF4 are gathered in 4 bits and their scales.
TEST(Formulas, FrozenWeightsAreSentAsTheyAreStored) {
  for (const char* weights : {"precision", "nf4"}) {
    const Spec spec = spec_of({"model.tied_embeddings=false", "strategy.sharding=hsdp", "strategy.shard_group=2",
                               fmt::format("model.lora={{rank: 4, weights: {}}}", weights)});
    const Prediction p = predict(spec);
    const std::vector<Volume> list = volumes(spec, p.plan, p.report);
    ASSERT_FALSE(list.empty());
    EXPECT_NEAR(list[0].simulated / list[0].bytes, 1, 1e-3) << weights;
  }
}

// Unlike ends of a pipeline reduce a tied table over all their ranks, and cut its states over these; stages of several
// ranks send as much as their parts of a micro-batch take.
TEST(Formulas, KnowStagesOfSeveralRanks) {
  for (const char* sharding : {"none", "zero1"}) {
    for (const char* replicas : {"[1, 2]", "[2, 1]", "[2, 2]"}) {
      const Spec spec =
          spec_of({fmt::format("strategy.sharding={}", sharding), "strategy.pipeline=2", "strategy.tensor=2",
                   "strategy.data=1", "strategy.micro_batch=2", fmt::format("strategy.stage_replicas={}", replicas),
                   fmt::format("gpus={}", replicas == std::string("[2, 2]") ? 8 : 6)});
      const Prediction p = predict(spec);
      const std::string what = fmt::format("{} {}", sharding, replicas);
      for (std::size_t s = 0; s < p.plan.classes.size(); ++s) {
        double formula = 0;
        for (const Dimension copies : {Dimension::data, Dimension::embedding}) {
          StateFormula f = state_formula(spec, p.plan, copies);
          if (copies == Dimension::data) f = of_slot(f, p.plan, s);
          formula += f.bytes(static_cast<double>(elements_of(p.plan, s, copies)));
        }
        EXPECT_NEAR(formula, static_cast<double>(states_in_plan(p.plan, s)), 100) << what;
      }
      const std::vector<Volume> list = volumes(spec, p.plan, p.report);
      const bool unlike = spec.strategy.ends_unlike();
      ASSERT_EQ(list.size(), unlike ? 4U : 3U) << what;
      for (const Volume& v : list) {
        // Embedding, head and norm gradients come on top of the layers' own.
        const bool layers = v.what.starts_with("tensor");
        EXPECT_GE(v.simulated / v.bytes, 1 - 1e-4) << what << " " << v.what;
        EXPECT_LE(v.simulated / v.bytes, layers ? 1.15 : 1 + 1e-4) << what << " " << v.what;
      }
      EXPECT_EQ(list[1].what == "embedding", unlike);
    }
  }
}

TEST(Formulas, DataVolumeIsWhatIsSent) {
  for (const ShardingRow& row : sharding_rows()) {
    for (const char* gradients : {"strategy.gradient_precision=fp32", "strategy.gradient_precision=bf16"}) {
      const Spec spec =
          spec_of({fmt::format("strategy.sharding={}", row.name), gradients, "strategy.global_batch=32",
                   "model.tied_embeddings=false", row.hybrid ? "strategy.shard_group=4" : "strategy.shard_group=null"});
      const Prediction p = predict(spec);
      const std::vector<Volume> list = volumes(spec, p.plan, p.report);
      ASSERT_EQ(list.size(), 1U);
      EXPECT_NEAR(list[0].simulated / list[0].bytes, 1, 1e-4) << row.name << ' ' << gradients << ' ' << list[0].formula;
    }
  }
}

// Copies of a model share its micro-batches, units that stay gathered are not gathered twice, a tied table on a stage
// with both ends is used twice, and some stacks reduce whole what they shard.
TEST(Formulas, DataVolumeKnowsSchedulesAndStacks) {
  int compared = 0;
  for (const char* software : {"orrery", "pytorch-fsdp", "torchtitan", "nanotron", "megatron-deepspeed-2022"}) {
    for (const char* schedule : {"1f1b", "chimera", "dualpipe", "zb-h1", "zb-v", "interleaved"}) {
      for (const char* sharding : {"zero1", "zero2", "zero3", "fsdp", "fsdp-grad-op"}) {
        for (const char* tied : {"true", "false"}) {
          const bool chunks = std::string(schedule) == "interleaved";
          const auto set = [](const char* key, const char* value) { return fmt::format("{}={}", key, value); };
          std::vector<std::string> keys = {set("software", software),
                                           set("strategy.schedule", schedule),
                                           set("strategy.sharding", sharding),
                                           set("model.tied_embeddings", tied),
                                           "strategy.pipeline=2",
                                           "strategy.global_batch=32",
                                           "strategy.gradient_precision=bf16",
                                           "strategy.overlap.gradient_reduce=false"};
          if (chunks) keys.emplace_back("strategy.virtual_stages=2");
          try {
            const Spec spec = spec_of(keys);
            const Prediction p = predict(spec);
            const Volume data = volumes(spec, p.plan, p.report).front();
            ++compared;
            EXPECT_NEAR(data.simulated / data.bytes, 1, 1e-4)
                << software << ' ' << schedule << ' ' << sharding << ' ' << tied << ' ' << data.formula;
          } catch (const Error&) {  // the planner refuses the combination
          }
        }
      }
    }
  }
  EXPECT_GT(compared, 150);  // out of 300 combinations; the planner refuses the rest
}

// Stages that share the vocabulary each gather and reduce their part of a tied table for its lookups and its logits,
// whether or not dropout is a block of its own behind the lookups.
TEST(Formulas, DataVolumeKnowsSharedTables) {
  for (const char* dropout : {"0", "0.1"}) {
    for (const char* sharding : {"zero2", "zero3", "fsdp"}) {
      const Spec spec =
          spec_of({"strategy.schedule=vocab-1f1b", "strategy.pipeline=2", "model.tied_embeddings=true",
                   fmt::format("model.dropout={}", dropout), fmt::format("strategy.sharding={}", sharding),
                   "strategy.global_batch=32", "strategy.gradient_precision=bf16"});
      const Prediction p = predict(spec);
      const Volume data = volumes(spec, p.plan, p.report).front();
      EXPECT_NEAR(data.simulated / data.bytes, 1, 1e-3) << dropout << ' ' << sharding << ' ' << data.formula;
    }
  }
}

// A stack that gathers eight-bit matrices after the update holds only those as weights.
TEST(Formulas, EightBitMatricesAreTheWeights) {
  for (const char* sharding : {"none", "zero1"}) {
    const Spec spec = spec_of({"software=megatron-core-mlperf", "cluster.node=dgx-b200", "strategy.precision=mxfp8",
                               fmt::format("strategy.sharding={}", sharding)});
    const Prediction p = predict(spec);
    const double by_form = state_formula(spec, p.plan).bytes(static_cast<double>(elements_of(p.plan, 0)));
    EXPECT_NEAR(by_form / static_cast<double>(states_in_plan(p.plan, 0)), 1, 1e-4) << sharding;
    const Volume data = volumes(spec, p.plan, p.report).front();
    EXPECT_NEAR(data.simulated / data.bytes, 1, 1e-3) << sharding << ' ' << data.formula;
  }
}

// If only some layers of a stage are recomputed, their repeated communication is counted for these layers.
TEST(Formulas, RecomputedLayersSendOnceMore) {
  const auto ratios = [](std::vector<std::string> keys, const char* layers) {
    keys.push_back(fmt::format("strategy.recompute_layers={}", layers));
    const Spec spec = spec_of(keys);
    const Prediction p = predict(spec);
    std::vector<double> list;
    for (const Volume& v : volumes(spec, p.plan, p.report)) list.push_back(v.simulated / v.bytes);
    return list;
  };
  for (const char* layers : {"null", "1", "2"}) {
    EXPECT_NEAR(ratios({"strategy.context=4", "strategy.recompute=full", "strategy.pipeline=2"}, layers)[1], 1, 1e-9);
    EXPECT_NEAR(
        ratios({"model.moe={experts: 8, top_k: 2, feed_forward: 64}", "strategy.expert=4", "strategy.recompute=full"},
               layers)
            .back(),
        1, 1e-2);
  }
}

TEST(Formulas, LayersAndBoundariesSendWhatIsSaid) {
  for (const char* sequence : {"strategy.sequence_parallel=true", "strategy.sequence_parallel=false"}) {
    for (const char* recompute : {"strategy.recompute=none", "strategy.recompute=full"}) {
      const Spec spec = spec_of({"strategy.tensor=2", "strategy.pipeline=2", sequence, recompute});
      const Prediction p = predict(spec);
      const std::vector<Volume> list = volumes(spec, p.plan, p.report);
      ASSERT_EQ(list.size(), 3U);
      // Embedding, head and norm gradients come on top of the layers' own.
      EXPECT_GE(list[1].simulated / list[1].bytes, 1 - 1e-9) << sequence << ' ' << recompute;
      EXPECT_LE(list[1].simulated / list[1].bytes, 1.15) << sequence << ' ' << recompute;
      EXPECT_NEAR(list[2].simulated / list[2].bytes, 1, 1e-9) << sequence << ' ' << recompute;
    }
  }
}

// Optimus, Tesseract and 3D tensor parallelism: everything but sums of norms and losses, to the byte.
TEST(Formulas, GridVolumeIsWhatIsSent) {
  // in 2D and 2.5D, the ranks of a row hold copies of a single key/value head
  using Grid = std::pair<const char*, int>;
  for (const auto& [kind, kv_heads] : {Grid{"2d", 4}, {"2.5d", 4}, {"3d", 4}, {"2d", 1}, {"2.5d", 1}}) {
    for (const char* recompute : {"none", "full"}) {
      const Spec spec = parse_spec(
          "{model: {name: g, layers: 4, hidden: 64, heads: 8, feed_forward: 96, vocab: 256}, sequence: "
          "64, "
          "cluster: {node: dgx-a100, nodes: 2}, strategy: {data: 1, micro_batch: 4, global_batch: 8}}",
          "spec.yaml",
          {fmt::format("strategy.tensor_kind={}", kind), fmt::format("strategy.recompute={}", recompute),
           fmt::format("model.kv_heads={}", kv_heads),
           fmt::format("strategy.tensor={}", std::string(kind) == "2d" ? 4 : 8), "strategy.pipeline=2"});
      const Prediction p = predict(spec);
      const std::vector<Volume> list = volumes(spec, p.plan, p.report);
      const bool layers = std::string(kind) == "2.5d";  // in 2.5D, gradients are summed over depth as over data ranks
      ASSERT_EQ(list.size(), layers ? 3U : 2U);
      EXPECT_NEAR(list[layers ? 1 : 0].simulated / list[layers ? 1 : 0].bytes, 1, 1e-9) << kind << ' ' << recompute;
      EXPECT_NEAR(list.back().simulated / list.back().bytes, 1, 1e-9) << kind << ' ' << recompute;
    }
  }
}

TEST(Formulas, ContextVolumeIsWhatIsSent) {
  for (const char* kind : {"ring", "allgather", "ulysses", "{ring: 2, ulysses: 2}"}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      for (const char* order : {"zigzag", "contiguous"}) {
        const Spec spec = spec_of({"strategy.context=4", fmt::format("strategy.context_kind={}", kind),
                                   fmt::format("strategy.context_order={}", order),
                                   fmt::format("strategy.recompute={}", recompute), "strategy.pipeline=2"});
        const Prediction p = predict(spec);
        const std::vector<Volume> list = volumes(spec, p.plan, p.report);
        ASSERT_EQ(list.size(), 3U);
        EXPECT_NEAR(list[1].simulated / list[1].bytes, 1, 1e-9) << kind << ' ' << recompute << ' ' << order;
      }
    }
  }
}

// With latent attention keys and values travel expanded; values and results are narrower than queries and keys.
TEST(Formulas, ContextVolumeKnowsLatentAttention) {
  for (const char* kind : {"ring", "allgather", "ulysses", "{ring: 2, ulysses: 2}"}) {
    const Spec spec =
        spec_of({"model={name: latent, layers: 4, hidden: 512, heads: 8, feed_forward: 1024, vocab: 512, "
                 "mla: {q_lora_rank: 128, kv_lora_rank: 64, qk_nope_head_dim: 48, qk_rope_head_dim: 16, "
                 "v_head_dim: 32}}",
                 "strategy.context=4", fmt::format("strategy.context_kind={}", kind)});
    const Prediction p = predict(spec);
    const std::vector<Volume> list = volumes(spec, p.plan, p.report);
    ASSERT_EQ(list.size(), 2U);
    EXPECT_NEAR(list[1].simulated / list[1].bytes, 1, 1e-9) << kind;
  }
}

TEST(Formulas, ZeroPaperFigureOne) {
  // 7.5e9 parameters, 64 ranks, K = 12, 16-bit gradients: 120, 31.4, 16.6, 1.9 GB.
  StateFormula f{.parameters = 2, .gradients = 2, .optimizer = 12, .shards = 64};
  EXPECT_EQ(text_of(f), "16Ψ");
  EXPECT_NEAR(f.bytes(7.5e9), 120e9, 0.05e9);
  f.shards_optimizer = true;
  EXPECT_EQ(text_of(f), "4Ψ + 12Ψ/N");
  EXPECT_NEAR(f.bytes(7.5e9), 31.4e9, 0.05e9);
  f.shards_gradients = true;
  EXPECT_EQ(text_of(f), "2Ψ + 14Ψ/N");
  EXPECT_NEAR(f.bytes(7.5e9), 16.6e9, 0.05e9);
  f.shards_parameters = true;
  EXPECT_EQ(text_of(f), "16Ψ/N");
  EXPECT_NEAR(f.bytes(7.5e9), 1.9e9, 0.05e9);
}

// A shared vocabulary passes every stage; evicted activations (BPipe) go to a partner and back.
TEST(Formulas, PipelinesSendWhatTheirSchedulesSay) {
  for (const char* schedule : {"vocab-1f1b", "vocab-1f1b-alg1", "bpipe"}) {
    const Spec spec = spec_of({fmt::format("strategy.schedule={}", schedule), "strategy.pipeline=4", "strategy.data=1",
                               "gpus=4", "strategy.stage_layers=[3,3,3,3]"});
    const Prediction p = predict(spec);
    const std::vector<Volume> list = volumes(spec, p.plan, p.report);
    const bool bpipe = schedule == std::string("bpipe");
    ASSERT_EQ(list.size(), bpipe ? 1U : 2U);
    // For BPipe the formula takes the first stage's activations for every stage; only that stage has the embedding's.
    for (const Volume& v : list)
      EXPECT_NEAR(v.simulated / v.bytes, 1, bpipe ? 0.02 : 1e-4) << schedule << " " << v.what;
  }
}

// Without a barrier between steps ZB-H2 has no bubble; for other schedules that would overlap steps, explain prints no
// formula.
TEST(Formulas, BubblesKnowStepsWithoutABarrier) {
  Strategy s;
  s.pipeline = 4;
  s.global_batch = 12;
  s.schedule = "zb-h2";
  EXPECT_DOUBLE_EQ(bubble_formula(s, true)->share, 0);
  EXPECT_GT(bubble_formula(s)->share, 0);
  s.schedule = "zb-v";
  EXPECT_FALSE(bubble_formula(s, true));
  s.schedule = "1f1b";
  EXPECT_DOUBLE_EQ(bubble_formula(s, true)->share, bubble_formula(s)->share);
}

TEST(Formulas, BubblesAreTheClosedForms) {
  Strategy s;
  s.pipeline = 4;
  s.global_batch = 12;
  for (const auto& [schedule, share] :
       {std::pair{"gpipe", 3.0 / 15}, {"1f1b", 3.0 / 15}, {"naive", 3.0 / 4}, {"pipedream", 0.0}}) {
    s.schedule = schedule;
    ASSERT_TRUE(bubble_formula(s));
    EXPECT_DOUBLE_EQ(bubble_formula(s)->share, share) << schedule;
  }
  s.schedule = "interleaved";
  s.virtual_stages = 2;
  EXPECT_DOUBLE_EQ(bubble_formula(s)->share, 3.0 / 27);
  s.schedule = "file";
  EXPECT_FALSE(bubble_formula(s));
}

// Every formula gives the bubble of the schedule's order with equal times of all phases; a formula with "at most" gives
// no less.
TEST(Formulas, BubblesAreThoseOfTheOrders) {
  int formulas = 0;
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.updates != Updates::flush) continue;  // these fill once, Simulate.AsynchronousStepsHaveNoBubble
    for (const std::int64_t p : {2, 4, 6, 8}) {
      for (const std::int64_t m : {p, 2 * p, 2 * p + 2, 5 * p}) {
        const std::int64_t v = row.chunks > 0 ? row.chunks : 2;
        Strategy s;
        s.pipeline = p;
        s.global_batch = m;
        s.virtual_stages = v;
        s.schedule = row.name;
        const std::optional<Bubble> bubble = bubble_formula(s);
        if (!bubble || (row.name == "interleaved" && m % p != 0)) continue;
        std::int64_t end = 0;
        for (const auto& [first, last] : test::spans_of(make_schedule(row.name, {p, m, v, {}}), {1, 1, 1}))
          end = std::max(end, last);
        const double share = 1 - static_cast<double>(3 * m * v) / static_cast<double>(end);
        const bool most = bubble->formula.starts_with("at most");
        EXPECT_GE(bubble->share, share - 1e-12) << row.name << " " << p << " " << m;
        EXPECT_LE(bubble->share, share + (most ? 1 : 1e-12)) << row.name << " " << p << " " << m;
        ++formulas;
      }
    }
  }
  EXPECT_GT(formulas, 100);
}

// Long pipelines of more than two copies wait up to two forwards longer than the paper's.
TEST(Formulas, BubblesSayWhereOrdersAreLonger) {
  for (const auto& [name, f] : {std::pair{"chimera-4", 2}, {"chimera-8", 4}}) {
    for (const std::int64_t p : {6 * f, 8 * f, 16 * f}) {
      Strategy s;
      s.pipeline = s.global_batch = p;
      s.schedule = name;
      const std::optional<Bubble> bubble = bubble_formula(s);
      ASSERT_TRUE(bubble);
      std::int64_t end = 0;
      for (const auto& [first, last] : test::spans_of(make_schedule(name, {p, p, 1, {}}), {1, 1, 1}))
        end = std::max(end, last);
      const double share = 1 - static_cast<double>(3 * p) / static_cast<double>(end);
      EXPECT_EQ(bubble->formula.starts_with("at least"), p > 6 * f) << name << " " << p;
      if (p == 6 * f) {
        EXPECT_NEAR(bubble->share, share, 1e-12) << name;
      } else {
        EXPECT_LT(bubble->share, share) << name << " " << p;
      }
    }
  }
}

}  // namespace
}  // namespace orrery
