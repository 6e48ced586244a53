// The remarks that a report makes beside its figures.
#include "sim/report/remarks.h"

#include <algorithm>

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/generate/generate.h"
#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

bool says(const std::string& model, const std::string& strategy, const std::string& part) {
  const std::vector<std::string> list = predict(test::spec_of(model, strategy)).report.remarks;
  return std::any_of(list.begin(), list.end(), [&](const auto& line) { return line.find(part) != std::string::npos; });
}

std::string experts(const std::string& imbalance) {
  return "layers: 2, hidden: 64, heads: 4, feed_forward: 64, vocab: 96, moe: {experts: 8, top_k: 2, feed_forward: 64, "
         "imbalance: " +
         imbalance + "}";
}

// 8 experts of which a token meets 2: a rank gets at most 4 times the mean, and of two ranks at most twice.
TEST(Remarks, SayWhatImbalanceComesTo) {
  EXPECT_FALSE(says(experts("2"), "data: 8, expert: 8, global_batch: 8", "imbalance"));
  EXPECT_TRUE(says(experts("100"), "data: 8, expert: 8, global_batch: 8", "planned as 4 times the mean"));
  EXPECT_TRUE(says(experts("3"), "data: 2, expert: 2, global_batch: 2", "planned as 2 times the mean"));
}

TEST(Remarks, SayWhoseImbalanceItIs) {
  const std::string layout = "data: 8, expert: 8, global_batch: 8", model =
                                                                        "layers: 2, hidden: 64, heads: 4, "
                                                                        "feed_forward: 64, vocab: 96";
  const auto list = [&](const std::string& imbalance) {
    const Spec spec = parse_spec(fmt::format("model: {{{}}}\nteacher: {{{}}}\nsequence: 64\ncluster: {{node: dgx-h100, "
                                             "nodes: 1}}\nstrategy: {{{}}}\n",
                                             model, experts(imbalance), layout),
                                 "taught.yaml");
    return fmt::format("{}", fmt::join(predict(spec).report.remarks, "\n"));
  };
  EXPECT_NE(list("100").find("teacher.moe.imbalance: 100 is more than"), std::string::npos) << list("100");
  EXPECT_EQ(list("2").find("imbalance"), std::string::npos) << list("2");
}

TEST(Remarks, SayThatOneRankShardsNothing) {
  EXPECT_TRUE(says(test::kSmall, "data: 1, sharding: zero3, global_batch: 2", "planned as none"));
  EXPECT_FALSE(says(test::kSmall, "data: 2, sharding: zero3, global_batch: 2", "planned as none"));
}

TEST(Remarks, SayThatAWarmUpIsTooLong) {
  EXPECT_TRUE(says(test::kSmall, "pipeline: 4, schedule: zb-h2, global_batch: 6", "from 7 micro-batches on"));
  EXPECT_FALSE(says(test::kSmall, "pipeline: 4, schedule: zb-h2, global_batch: 7", "zb-h2"));
}

TEST(Remarks, SayThatAStackIsOfAnotherVendor) {
  const auto has = [](const char* node, const char* software, const char* overlap, const char* part) {
    const Spec spec = parse_spec(fmt::format("model: gpt2\nsequence: 1024\ncluster: {{node: {}, nodes: 1}}\nsoftware: "
                                             "{}\nstrategy: {{tensor: 4, data: 2, overlap: {{tensor: {}}}}}\n",
                                             node, software, overlap),
                                 "vendor.yaml");
    return fmt::format("{}", fmt::join(predict(spec).report.remarks, "\n")).find(part) != std::string::npos;
  };
  EXPECT_TRUE(has("dgx-h100", "rocm-torchtitan", "false", "runs on AMD's GPUs"));
  EXPECT_TRUE(has("amd-mi300x", "torchtitan", "false", "runs on NVIDIA's GPUs"));
  EXPECT_FALSE(has("amd-mi300x", "rocm-torchtitan", "false", "described as it runs"));
  EXPECT_FALSE(has("dgx-h100", "torchtitan", "false", "described as it runs"));
  EXPECT_TRUE(has("dgx-h100", "torchtitan", "true", "a pass of torch.compile"));
  EXPECT_FALSE(has("dgx-h100", "{profile: torchtitan, compile: true}", "true", "a pass of torch.compile"));
}

TEST(Remarks, SayThatKeysOfTrainingChangeNoText) {
  const auto remarks = [](const char* workload) {
    const Spec spec = parse_spec(fmt::format("{{model: gpt2, sequence: 64, {} cluster: {{node: dgx-h100, nodes: 1}}, "
                                             "gpus: 1, strategy: {{recompute: full, optimizer: {{name: sgd}}}}}}",
                                             workload),
                                 "text.yaml");
    return fmt::format("{}", fmt::join(predict(spec, profile_for(spec, "")).report.remarks, "\n"));
  };
  const std::string text = remarks("workload: generate,");
  EXPECT_NE(text.find("strategy.recompute"), std::string::npos) << text;
  EXPECT_NE(text.find("of training; changes nothing"), std::string::npos) << text;
  EXPECT_EQ(remarks("").find("of training"), std::string::npos);
}

// A link of PCIe 5.0 carries 48 GB/s of data.
TEST(Remarks, SayThatPcieHoldsNicsBack) {
  const auto remarks = [](int Gbps, int nodes) {
    const Spec spec =
        parse_spec(fmt::format("model: gpt2\nsequence: 1024\ncluster: {{node: dgx-h100, nodes: {}, nic_Gbps: {}}}\n"
                               "strategy: {{data: {}}}\n",
                               nodes, Gbps, 8 * nodes),
                   "nics.yaml");
    return fmt::format("{}", fmt::join(predict(spec).report.remarks, "\n"));
  };
  EXPECT_NE(remarks(800, 2).find("PCIe carries 384 of the 800 GB/s"), std::string::npos) << remarks(800, 2);
  EXPECT_EQ(remarks(400, 2).find("PCIe"), std::string::npos);
  EXPECT_EQ(remarks(800, 1).find("PCIe"), std::string::npos);
}

// InfiniBand's switches route adaptively; RoCE's need not, and a spec that leaves it open is told so.
TEST(Remarks, SayThatRoutingOverRoceIsTakenAsAdaptive) {
  const auto tells = [](const std::string& cluster) {
    const Spec spec = parse_spec(
        "model: gpt2\nsequence: 1024\ncluster: {node: dgx-h100, nodes: 2, " + cluster + "}\nstrategy: {data: 16}\n",
        "roce.yaml");
    const std::string all = fmt::format("{}", fmt::join(predict(spec).report.remarks, "\n"));
    return all.find("taken as adaptive") != std::string::npos;
  };
  EXPECT_TRUE(tells("fabric: roce, network: {leaf: {nodes: 1}}"));
  EXPECT_FALSE(tells("fabric: roce, network: {leaf: {nodes: 1}, routing: {kind: adaptive}}"));
  EXPECT_FALSE(tells("fabric: roce, network: {faults: [{node: 0, Gbps: 100}]}"));
  EXPECT_FALSE(tells("fabric: roce"));
  EXPECT_FALSE(tells("network: {leaf: {nodes: 1}}"));
}

TEST(Remarks, SayHowStagesShareABatch) {
  const auto list = [](std::int64_t batch, const std::string& rest) {
    const Spec spec = parse_spec(fmt::format("{{model: llama-3.1-8b, generate: {{batch: {}, input: 64{}}}, cluster: "
                                             "{{node: dgx-h100, nodes: 1}}, strategy: {{pipeline: 8}}}}",
                                             batch, rest),
                                 "t.yaml");
    return fmt::format("{}",
                       fmt::join(predict_batch(spec, profile_for(spec, "")).prefill.front().report.remarks, "\n"));
  };
  EXPECT_NE(list(63, "").find("63 sequences pass through 8 stages in 7 micro-batches of 9"), std::string::npos);
  EXPECT_NE(list(63, "").find("the most that divides them; generate.batch=56 or 64 makes one a stage"),
            std::string::npos);
  EXPECT_NE(list(1, "").find("1 sequence passes through 8 stages in 1 micro-batch of 1, the most that divides it; "
                             "generate.batch=8 makes"),
            std::string::npos);
  EXPECT_EQ(list(64, "").find("stages"), std::string::npos);
  EXPECT_NE(list(64, ", output: 131072").find("more than the 131072 positions"), std::string::npos);
  EXPECT_EQ(list(64, ", output: 131008").find("positions"), std::string::npos);
}

}  // namespace
}  // namespace orrery
