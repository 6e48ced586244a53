#include "sim/predict/predict.h"

#include <cstdio>
#include <fstream>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// A small GPT under a strategy: "tensor: 2, pipeline: 2, ...".
Spec gpt_spec(const std::string& strategy, const std::string& software = "megatron-core",
              const std::string& cluster = "{node: dgx-h100, nodes: 8}") {
  return parse_spec(
      "model: {name: small, layers: 8, hidden: 1024, heads: 16, kv_heads: 8, feed_forward: 4096, vocab: 32000}\n"
      "sequence: 1024\ncluster: " +
          cluster + "\nsoftware: " + software + "\nstrategy: {" + strategy + "}\n",
      "case");
}

// Mixed strategies on 4 to 16 GPUs, with the stacks whose habits differ most.
const std::pair<const char*, const char*> kStrategies[] = {
    {"data: 4, sharding: none, global_batch: 8", "pytorch-fsdp"},
    {"data: 4, sharding: zero1, global_batch: 8", "megatron-core"},
    {"data: 4, sharding: zero2, global_batch: 8", "megatron-core"},
    {"data: 4, sharding: zero2, global_batch: 4", "deepspeed-megatron-2021"},
    {"data: 4, sharding: zero3, global_batch: 8", "pytorch-fsdp"},
    {"data: 8, sharding: fsdp, global_batch: 8", "pytorch-fsdp"},
    {"data: 16, sharding: fsdp, global_batch: 16", "torchtitan"},
    {"data: 8, sharding: fsdp-grad-op, global_batch: 16", "pytorch-fsdp"},
    {"data: 16, sharding: hsdp, shard_group: 8, global_batch: 16", "pytorch-fsdp"},
    {"data: 8, sharding: hsdp, shard_group: 4, global_batch: 32", "pytorch-fsdp"},
    {"tensor: 4, data: 1, global_batch: 4", "megatron-core"},
    {"tensor: 8, data: 1, sequence_parallel: false, global_batch: 4", "megatron-core"},
    {"tensor: 4, data: 2, sharding: zero1, global_batch: 8", "megatron-lm-2021"},
    {"tensor: 2, data: 4, sharding: none, global_batch: 8", "megatron-lm-2022"},
    {"tensor: 2, data: 4, sharding: zero3, global_batch: 8", "pytorch-fsdp"},
    {"tensor: 4, data: 2, sharding: fsdp, global_batch: 4", "torchtitan"},
    {"tensor: 2, data: 8, sharding: hsdp, shard_group: 4, global_batch: 8", "torchtitan"},
    {"pipeline: 4, data: 1, global_batch: 8", "megatron-core"},
    {"pipeline: 4, data: 2, schedule: gpipe, global_batch: 8", "nanotron"},
    {"pipeline: 2, data: 4, schedule: naive, sharding: none, global_batch: 8", "orrery"},
    {"pipeline: 4, virtual_stages: 2, data: 1, global_batch: 8", "megatron-core"},
    {"pipeline: 2, virtual_stages: 4, data: 4, sharding: zero1, global_batch: 16", "megatron-core"},
    {"pipeline: 4, data: 4, sharding: zero2, global_batch: 16", "meta-llama3"},
    {"pipeline: 2, data: 4, sharding: zero3, global_batch: 16", "pytorch-fsdp"},
    {"pipeline: 2, data: 4, sharding: fsdp, global_batch: 8", "torchtitan"},
    {"pipeline: 4, data: 2, schedule: zb-h2, sharding: zero1, global_batch: 16", "megatron-core"},
    {"tensor: 2, pipeline: 4, data: 1, schedule: zb-1p, global_batch: 8", "megatron-core"},
    {"pipeline: 4, data: 2, schedule: zb-v, sharding: zero1, global_batch: 16", "megatron-core"},
    {"tensor: 2, pipeline: 4, data: 1, schedule: v-min, global_batch: 8", "megatron-core"},
    {"tensor: 2, pipeline: 4, data: 1, schedule: dualpipev, global_batch: 8", "megatron-core"},
    {"pipeline: 4, data: 2, sharding: zero1, schedule: chimera, global_batch: 16", "megatron-core"},
    {"pipeline: 4, data: 1, schedule: dualpipe, global_batch: 8", "orrery"},
    {"pipeline: 4, data: 2, sharding: zero1, schedule: bpipe, global_batch: 16", "megatron-core"},
    {"tensor: 16, tensor_kind: 2d, data: 1, micro_batch: 4, global_batch: 8", "megatron-core"},
    {"tensor: 4, tensor_kind: 2d, data: 4, sharding: fsdp, micro_batch: 2, global_batch: 16", "torchtitan"},
    {"tensor: 8, tensor_kind: 2.5d, data: 2, sharding: zero1, micro_batch: 4, global_batch: 16", "megatron-core"},
    {"tensor: 8, tensor_kind: 3d, pipeline: 2, data: 1, micro_batch: 4, global_batch: 16", "orrery"},
    {"tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 8", "megatron-core"},
    {"tensor: 2, pipeline: 4, data: 2, virtual_stages: 2, sharding: zero1, global_batch: 16", "megatron-core"},
    {"tensor: 2, pipeline: 2, data: 2, sharding: hsdp, shard_group: 2, global_batch: 8", "torchtitan"},
    {"tensor: 2, pipeline: 2, data: 2, rank_order: tp-cp-pp-dp, sharding: zero2, global_batch: 8", "meta-llama3"},
    {"data: 8, sharding: zero2, global_batch: 16, offload: {optimizer: cpu, gradients: cpu}", "orrery"},
    {"data: 16, sharding: zero1, global_batch: 32, offload: {optimizer: cpu}", "megatron-core"},
    {"data: 4, sharding: zero3, global_batch: 8, offload: {optimizer: nvme, gradients: nvme, parameters: nvme}",
     "orrery"},
    {"pipeline: 2, data: 4, sharding: zero2, global_batch: 16, offload: {optimizer: {device: cpu, delayed_update: "
     "true}}",
     "orrery"},
    {"tensor: 2, pipeline: 2, data: 2, global_batch: 8, offload: {activations: cpu}", "megatron-core"},
    {"tensor: 4, sequence_parallel: false, data: 2, global_batch: 4, recompute: full, partition_activations: true, "
     "offload: {activations: cpu}",
     "megatron-core"},
    {"tensor: 8, pipeline: 2, data: 1, virtual_stages: 2, global_batch: 8", "megatron-core"},
    {"tensor: 4, pipeline: 4, data: 1, recompute: full, global_batch: 8", "megatron-lm-2021"},
    {"tensor: 2, data: 2, recompute: selective, attention: unfused, global_batch: 4", "megatron-lm-2022"},
    {"data: 4, sharding: fsdp, recompute: full, global_batch: 8", "pytorch-fsdp"},
    {"pipeline: 4, data: 1, recompute: full, recompute_layers: 1, global_batch: 8", "megatron-core"},
    {"tensor: 2, data: 4, sharding: zero1, global_batch: 8", "{profile: megatron-core, cuda_graphs: true}"},
    {"context: 4, data: 1, global_batch: 1", "megatron-core"},
    {"context: 4, context_order: contiguous, data: 2, sharding: zero1, global_batch: 4", "megatron-core"},
    {"context: 2, context_order: contiguous, tensor: 2, pipeline: 2, data: 1, global_batch: 4", "megatron-core"},
    {"context: 4, context_kind: {ring: 2, ulysses: 2}, data: 2, sharding: fsdp, global_batch: 2", "pytorch-fsdp"},
    {"context: 2, context_kind: allgather, pipeline: 2, data: 2, sharding: zero1, global_batch: 8", "megatron-core"},
    {"tensor: 2, data: 4, sharding: zero1, global_batch: 8, overlap: {gradient_reduce: false, parameter_gather: false}",
     "megatron-core"},
    {"data: 8, sharding: data-parallel, global_batch: 8", "pytorch-fsdp"},
    {"data: 8, sharding: parameter-server, parameter_server: {servers: 3}, global_batch: 8", "megatron-core"},
    {"data: 16, sharding: parameter-server, parameter_server: {servers: 4}, global_batch: 16", "megatron-core"},
    {"data: 16, sharding: parameter-server, parameter_server: {servers: 4, colocated: false}, global_batch: 32",
     "orrery"},
    {"data: 16, sharding: parameter-server, parameter_server: {servers: 4, replicas: 2}, clip: 0, global_batch: 32",
     "orrery"},
};

// A report without the values that must differ: the numbers of simulated ranks and tasks, and the names of the classes.
std::string comparable(Report r, const Report& folded) {
  r.simulation = folded.simulation;
  r.memory.ranks.clear();
  for (LinkUseRow& l : r.links) l.of.clear();  // named by a class of ranks, or by a rank
  return to_json(r);
}

// The comparison of tensor grids in docs/guide.md: a grid also sends weights, while 1D sends only activations, but all
// of them. So with few sequences the cube, which sends least, wins over slow links; with many sequences every grid
// wins; 2.5D wins over fast links.
TEST(Predict, GridsBeatOneDimensionWhereLinksOrBatchSaySo) {
  const auto step = [](const char* kind, double nic_Gbps, int sequences) {
    const Spec spec = load_spec(
        ORRERY_SOURCE_DIR "/examples/gpt-tensor-grids.yaml",
        {fmt::format("strategy.tensor_kind={}", kind), fmt::format("cluster.nic_Gbps={}", nic_Gbps),
         fmt::format("strategy.micro_batch={}", sequences), fmt::format("strategy.global_batch={}", sequences)});
    return predict(spec).report.step_time_s;
  };
  EXPECT_LT(step("3d", 25, 16), step("1d", 25, 16));
  EXPECT_GT(step("3d", 200, 16), step("1d", 200, 16));
  for (const double nic : {25.0, 200.0}) {
    for (const char* kind : {"2d", "2.5d"}) EXPECT_GT(step(kind, nic, 16), step("1d", nic, 16)) << kind << nic;
    for (const char* kind : {"2d", "2.5d", "3d"}) EXPECT_LT(step(kind, nic, 64), step("1d", nic, 64)) << kind << nic;
  }
  EXPECT_LT(step("2d", 25, 64), step("2.5d", 25, 64));
  EXPECT_LT(step("2.5d", 200, 64), step("2d", 200, 64));
}

// Simulates a spec with one rank of each class, and with every rank, and compares each task's times and the reports.
void expect_unfolded_as_folded(const Spec& spec, const std::string& strategy) {
  const Prediction folded = predict(spec), all = predict(spec, true);
  ASSERT_EQ(all.trace.step_time, folded.trace.step_time) << strategy;
  ASSERT_EQ(all.plan.classes.size(), static_cast<std::size_t>(folded.plan.ranks)) << strategy;
  const std::vector<std::uint32_t> class_of = slots_of_ranks(folded.plan);
  for (const RankClass& rank : all.plan.classes) {
    const RankClass& like = folded.plan.classes[class_of[rank.representative]];
    ASSERT_EQ(rank.end - rank.begin, like.end - like.begin);
    for (TaskId t = 0; t < rank.end - rank.begin; ++t) {
      const Span &a = all.trace.spans[rank.begin + t], &b = folded.trace.spans[like.begin + t];
      ASSERT_TRUE(a.issued == b.issued && a.entered == b.entered && a.matched == b.matched && a.ended == b.ended)
          << strategy << ": " << rank.name << ", " << all.plan.op_of(rank.begin + t).name;
    }
  }
  EXPECT_EQ(comparable(all.report, folded.report), comparable(folded.report, folded.report)) << strategy;
}

TEST(Predict, UnfoldedAgreesWithFoldedToThePicosecond) {
  for (const auto& [strategy, software] : kStrategies)
    expect_unfolded_as_folded(gpt_spec(strategy, software), strategy);
}

// Two models on GPUs of their own, of which one has more tensor or data ranks than the other.
TEST(Predict, UnfoldedAgreesWithFoldedForTwoModelsApart) {
  for (const char* layouts :
       {"distill: {gpus: 4, strategy: {tensor: 4}}, strategy: {tensor: 2, data: 2, global_batch: 16}",
        "distill: {gpus: 2}, strategy: {tensor: 2, data: 4, sharding: zero1, global_batch: 16}",
        "distill: {gpus: 8, strategy: {pipeline: 2, tensor: 2}}, strategy: {pipeline: 2, data: 4, global_batch: 16}"}) {
    const std::string models = "{model: llama-3.2-1b, teacher: llama-3.2-3b, sequence: 1024, ";
    const std::string cluster = "cluster: {node: dgx-h100, nodes: 2}, ";
    expect_unfolded_as_folded(parse_spec(models + cluster + layouts + "}", "t.yaml"), layouts);
  }
}

// A slow rank slows its whole job, by no more than its own slowdown, and the other ranks wait.
TEST(Predict, StragglersUnfoldTheirReplicas) {
  for (const char* strategy :
       {"data: 8, sharding: none, global_batch: 16", "data: 8, sharding: fsdp, global_batch: 8",
        "tensor: 2, pipeline: 2, data: 4, sharding: zero1, global_batch: 16",
        "context: 2, pipeline: 2, data: 2, global_batch: 8",
        "data: 8, sharding: parameter-server, parameter_server: {servers: 2}, global_batch: 8"}) {
    Spec spec = gpt_spec(strategy, "{profile: megatron-core, cuda_graphs: true}");
    const Picoseconds even = predict(spec).trace.step_time;
    spec.cluster.stragglers = {{3, 1.5}, {6, 1.25}};
    const Prediction folded = predict(spec), all = predict(spec, true);
    EXPECT_EQ(all.trace.step_time, folded.trace.step_time) << strategy;
    EXPECT_EQ(comparable(all.report, folded.report), comparable(folded.report, folded.report)) << strategy;
    EXPECT_GT(folded.trace.step_time, even) << strategy;
    EXPECT_LE(folded.trace.step_time, even * 3 / 2) << strategy;
    if (spec.strategy.servers() > 0) continue;  // with servers, all ranks wait for transfers here
    EXPECT_GT(folded.report.time_s[static_cast<std::size_t>(TimeKind::imbalance)], 0) << strategy;
  }
}

// Folding equal stragglers gives the same time as simulating every rank.
TEST(Predict, AlikeStragglersFold) {
  for (const char* strategy :
       {"data: 8, sharding: none, global_batch: 16",
        "tensor: 2, pipeline: 2, data: 4, sharding: zero1, global_batch: 16",
        "tensor: 4, data: 4, sharding: zero2, global_batch: 8", "context: 2, tensor: 2, data: 4, global_batch: 8"}) {
    for (const std::vector<Straggler>& lag :
         {std::vector<Straggler>{{1, 1.5}}, {{1, 1.5}, {5, 1.5}}, {{0, 1.5}, {1, 1.5}, {2, 1.25}}}) {
      Spec spec = gpt_spec(strategy, "{profile: megatron-core, cuda_graphs: true}");
      spec.cluster.stragglers = lag;
      const Prediction folded = predict(spec), all = predict(spec, true);
      EXPECT_EQ(all.trace.step_time, folded.trace.step_time) << strategy;
      EXPECT_EQ(comparable(all.report, folded.report), comparable(folded.report, folded.report)) << strategy;
      EXPECT_LT(folded.plan.classes.size(), all.plan.classes.size()) << strategy;
    }
  }
}

// Groups that are a part of a tensor or a context group keep its places apart.
TEST(Predict, StragglersAmongPartsOfGroups) {
  for (const char* strategy : {"tensor: 16, data: 2, global_batch: 4",
                               "context: 4, context_kind: {ulysses: 2, ring: 2}, data: 2, global_batch: 4",
                               "tensor: 4, tensor_kind: 2d, data: 2, micro_batch: 2, global_batch: 8",
                               "tensor: 8, tensor_kind: 2.5d, data: 2, micro_batch: 4, global_batch: 16",
                               "tensor: 8, tensor_kind: 3d, data: 2, micro_batch: 4, global_batch: 16"}) {
    for (const int rank : {0, 3}) {
      Spec spec = gpt_spec(strategy, "{profile: megatron-core, cuda_graphs: true}");
      spec.cluster.stragglers = {{rank, 1.5}};
      EXPECT_EQ(predict(spec, true).trace.step_time, predict(spec).trace.step_time) << strategy;
    }
  }
}

// A step in the middle of several: its parts sum to the period, every rank of a class is in it alike, and it moves and
// computes what one step does.
TEST(Predict, AsynchronousStepsAddUp) {
  const auto asynchronous = [](const std::string& schedule) {
    return parse_spec(
        "model: {name: small, layers: 8, hidden: 4096, heads: 32, feed_forward: 16384, vocab: 512}\n"
        "sequence: 2048\ncluster: {node: dgx-h100, nodes: 1}\ngpus: 8\nstrategy: {pipeline: 4, "
        "global_batch: 16, clip: 0, recompute: full, schedule: " +
            schedule + "}\n",
        "test.yaml");
  };
  const Report flushed = predict(asynchronous("1f1b")).report;
  for (const std::string schedule : {"pipedream-2bw", "pipedream"}) {
    const Spec spec = asynchronous(schedule);
    const Prediction folded = predict(spec);
    Report all = predict(spec, true).report;
    double sum = 0;
    for (const double part : folded.report.time_s) sum += part;
    EXPECT_NEAR(sum, folded.report.step_time_s, 1e-9 * sum) << schedule;
    EXPECT_EQ(all.step_time_s, folded.report.step_time_s) << schedule;
    EXPECT_EQ(all.time_s, folded.report.time_s) << schedule;
    EXPECT_LT(folded.report.bubble_fraction, 0.5 * flushed.bubble_fraction) << schedule;
    const auto sent = [](const Report& r) {
      double bytes = 0;
      for (const CommunicationRow& row : r.communication) bytes += row.group == "pipeline" ? row.bytes_per_gpu : 0;
      return bytes;
    };
    EXPECT_DOUBLE_EQ(sent(folded.report), sent(flushed)) << schedule;
    const double ratio = folded.report.hardware_tflops_per_gpu / folded.report.model_tflops_per_gpu;
    EXPECT_NEAR(ratio, flushed.hardware_tflops_per_gpu / flushed.model_tflops_per_gpu, 1e-9) << schedule;
    ASSERT_EQ(folded.report.weights.size(), 4U);
    EXPECT_EQ(folded.report.weights[0].versions, schedule == "pipedream" ? 4 : 2);
    EXPECT_EQ(folded.report.weights[3].staleness, schedule == "pipedream" ? 0 : 1);
    EXPECT_NE(to_json(folded.report).find("\"staleness\""), std::string::npos);
  }
}

// Four ranks on every NIC: their sends and reductions share it.
TEST(Predict, UnfoldedAgreesWithFoldedOnContestedNics) {
  const char* cluster = "{gpu: h100-sxm, gpus_per_node: 8, nodes: 2, nics: 2, nic_Gbps: 200, fabric: infiniband}";
  for (const char* strategy :
       {"data: 16, sharding: none, global_batch: 16", "data: 16, sharding: fsdp, global_batch: 16",
        "tensor: 8, pipeline: 2, data: 1, global_batch: 8", "tensor: 4, data: 4, sharding: zero1, global_batch: 8",
        "pipeline: 2, data: 8, sharding: zero1, global_batch: 16",
        "tensor: 2, pipeline: 2, data: 4, sharding: zero1, global_batch: 16"}) {
    const Spec spec = gpt_spec(strategy, "megatron-core", cluster);
    const Prediction folded = predict(spec), all = predict(spec, true);
    EXPECT_EQ(all.trace.step_time, folded.trace.step_time) << strategy;
    EXPECT_EQ(comparable(all.report, folded.report), comparable(folded.report, folded.report)) << strategy;
  }
}

// In plain order the last ranks see most keys and the other ranks wait for them; in zigzag order no rank waits.
TEST(Predict, ContiguousRingsWait) {
  const auto step = [](const char* order) {
    return predict(
               parse_spec(fmt::format("{{model: llama-3.1-8b, sequence: 131072, cluster: {{node: dgx-h100, nodes: 1}}, "
                                      "strategy: {{context: 8, data: 1, global_batch: 1, context_order: {}}}}}",
                                      order),
                          "long.yaml"))
        .report;
  };
  const auto part = [](const Report& r, TimeKind kind) { return r.time_s[static_cast<std::size_t>(kind)]; };
  const Report zigzag = step("zigzag"), contiguous = step("contiguous");
  EXPECT_GT(contiguous.step_time_s, 1.4 * zigzag.step_time_s);
  EXPECT_GT(part(contiguous, TimeKind::imbalance), 0.3 * contiguous.step_time_s);
  EXPECT_EQ(part(zigzag, TimeKind::imbalance), 0);
  EXPECT_GT(part(zigzag, TimeKind::exposed_context), 0);
  EXPECT_LT(part(zigzag, TimeKind::exposed_context), 0.01 * zigzag.step_time_s);  // transfers run under attention
}

// A million tokens on 512 GPUs: one class of ranks.
TEST(Predict, AMillionTokens) {
  const Prediction p = predict(
      parse_spec("{model: llama-3.1-70b, sequence: 1048576, cluster: {node: dgx-h100, nodes: 64}, "
                 "strategy: {tensor: 8, context: 64, data: 1, global_batch: 1, recompute: full, sharding: zero1}}",
                 "long.yaml"));
  EXPECT_EQ(p.plan.classes.size(), 1U);
  EXPECT_TRUE(p.report.memory.fits);
  EXPECT_GT(p.report.mfu_full_attention, 0.3);
}

TEST(Predict, UnfoldedMemoryAgreesRankByRank) {
  for (const char* strategy : {"tensor: 2, pipeline: 2, data: 2, sharding: zero1, global_batch: 8",
                               "data: 4, sharding: fsdp, global_batch: 8"}) {
    const Spec spec = gpt_spec(strategy);
    const Prediction folded = predict(spec), all = predict(spec, true);
    for (std::size_t r = 0; r < all.plan.classes.size(); ++r) {
      const std::int64_t stage = all.plan.classes[r].stage;
      const SlotMemory &a = all.report.memory.ranks[r].memory, &b = folded.report.memory.ranks[stage].memory;
      EXPECT_EQ(a.peak, b.peak);
      EXPECT_EQ(a.peak_reserved, b.peak_reserved);
      EXPECT_EQ(a.at_peak, b.at_peak);
      EXPECT_EQ(a.alive, b.alive);
      EXPECT_EQ(all.report.memory.ranks[r].at, folded.report.memory.ranks[stage].at);
    }
  }
}

TEST(Predict, TimesSumUpAndFiguresFollowFromEachOther) {
  for (const auto& [strategy, software] : kStrategies) {
    const Spec spec = gpt_spec(strategy, software);
    const Report r = predict(spec).report;
    const double sum = std::accumulate(r.time_s.begin(), r.time_s.end(), 0.0);
    EXPECT_NEAR(sum, r.step_time_s, 1e-6 * r.step_time_s) << strategy;
    EXPECT_EQ(r.time_s[static_cast<std::size_t>(TimeKind::other)], 0) << strategy;
    EXPECT_NEAR(r.tokens_per_s * r.step_time_s, static_cast<double>(spec.strategy.global_batch * spec.sequence), 1e-3);
    EXPECT_GT(r.mfu, 0);
    EXPECT_LT(r.mfu, 1);
    EXPECT_GE(r.hfu, r.mfu);
    EXPECT_EQ(r.hfu > r.mfu, r.time_s[static_cast<std::size_t>(TimeKind::recompute)] > 0) << strategy;
    Bytes most = 0;
    for (const RankMemory& rank : r.memory.ranks) {
      most = std::max(most, rank.memory.peak);
      const auto& at = rank.memory.at_peak;
      EXPECT_EQ(std::accumulate(at.begin(), at.end(), Bytes{0}), rank.memory.peak) << strategy;
      EXPECT_LE(rank.memory.peak, rank.memory.peak_reserved) << strategy;
      EXPECT_LE(rank.memory.peak_reserved, rank.device_peak) << strategy;
    }
    EXPECT_EQ(most, r.memory.peak) << strategy;
    EXPECT_LE(r.memory.first_step_peak, r.memory.peak) << strategy;
  }
}

double part(const Report& r, TimeKind k) { return r.time_s[static_cast<std::size_t>(k)]; }

TEST(Predict, AnImportedProfileIsFilledFromTheBuiltInOne) {
  Profile imported;
  imported.rest_built_in = true;
  imported.measured.transfers = {{"all_reduce", 8, {{1024, 1e-6}}, 1}};
  const test::TemporaryFolder folder;
  const std::string path = folder.path("filled.json");
  std::ofstream(path) << to_json(imported);
  const Spec spec = gpt_spec("data: 8, global_batch: 8", "megatron-core");
  const Profile filled = profile_for(spec, path), built_in = profile_for(spec, "");
  EXPECT_FALSE(has_formulas(load_profile(path)));
  EXPECT_EQ(filled.gemm.tiles.size(), built_in.gemm.tiles.size());
  EXPECT_EQ(built_in.hash, find_profile(spec.cluster.gpu).hash);
  ASSERT_EQ(filled.measured.transfers.size(), 1U);
  EXPECT_EQ(filled.measured.transfers[0].nodes, 1);
  EXPECT_TRUE(filled.rest_built_in);
}

TEST(Predict, EachKindComesFromWhatCausesIt) {
  const auto report = [](const std::string& strategy, const std::string& software = "megatron-core") {
    return predict(gpt_spec(strategy, software)).report;
  };
  EXPECT_GT(part(report("tensor: 8, data: 1, global_batch: 4"), TimeKind::exposed_tensor), 0);
  EXPECT_GT(part(report("data: 8, sharding: none, global_batch: 8, overlap: {gradient_reduce: false}"),
                 TimeKind::exposed_data),
            part(report("data: 8, sharding: none, global_batch: 8"), TimeKind::exposed_data));
  const std::string fsdp = "data: 8, sharding: fsdp, global_batch: 8";
  for (const char* key : {"gradient_reduce", "parameter_gather"}) {
    EXPECT_GT(part(report(fsdp + ", overlap: {" + key + ": false}", "pytorch-fsdp"), TimeKind::exposed_data),
              1.2 * part(report(fsdp, "pytorch-fsdp"), TimeKind::exposed_data))
        << key;
  }
  // Gathers under the update are hidden by it in part, and those under forward whole.
  const auto gathered = [&](const char* when) {
    return part(report(fmt::format("data: 8, sharding: zero1, bucket_MiB: 25, global_batch: 8, overlap: "
                                   "{{parameter_gather: {}}}",
                                   when)),
                TimeKind::exposed_data);
  };
  EXPECT_LT(gathered("update"), gathered("false"));
  EXPECT_LE(gathered("true"), gathered("update"));
  const Report pipeline = report("pipeline: 4, data: 1, global_batch: 8");
  EXPECT_GT(part(pipeline, TimeKind::bubble), 0);
  EXPECT_GT(part(pipeline, TimeKind::exposed_pipeline), 0);
  EXPECT_GT(part(report("data: 1, recompute: full"), TimeKind::recompute), 0);
  EXPECT_GT(part(report("data: 1"), TimeKind::optimizer), 0);
  const char* slow = "{profile: megatron-core, launch_us: 400}";
  const char* graphs = "{profile: megatron-core, launch_us: 400, cuda_graphs: true}";
  EXPECT_GT(part(report("data: 1", slow), TimeKind::launch), 0);
  EXPECT_EQ(part(report("data: 1", graphs), TimeKind::launch), 0);
}

}  // namespace
}  // namespace orrery
