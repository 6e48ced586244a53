#include "sim/report/report.h"

#include <numeric>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "sim/predict/predict.h"
#include "sim/report/flops.h"

namespace orrery {
namespace {

Spec predicted_spec(const std::string& strategy, const std::string& more = "") {
  return parse_spec("model: {name: t, layers: 4, hidden: 512, heads: 8, feed_forward: 2048, vocab: 4096" + more +
                        "}\nsequence: 256\ncluster: {node: dgx-h100, nodes: 1}\nstrategy: " + strategy + "\n",
                    "test.yaml");
}

Prediction predicted(const std::string& strategy, const std::string& more = "") {
  return predict(predicted_spec(strategy, more));
}

const CommunicationRow* row(const Report& r, std::string_view group, std::string_view op) {
  for (const CommunicationRow& c : r.communication) {
    if (c.group == group && c.op == op) return &c;
  }
  return nullptr;
}

// A GPU's profile may lack the attention kernel of a stack: the report names the kernel used for pricing instead.
TEST(Report, SaysWhichAttentionStandsIn) {
  const auto remarks = [](const char* gpu, const char* kernel, const char* attention) {
    return predict(parse_spec(fmt::format("model: {{name: t, layers: 2, hidden: 512, heads: 8, feed_forward: 512, "
                                          "vocab: 512}}\nsequence: 256\ncluster: {{node: {}, nodes: 1}}\n"
                                          "software: {{profile: orrery, attention_kernel: {}}}\n"
                                          "strategy: {{attention: {}}}\n",
                                          gpu, kernel, attention),
                              "test.yaml"))
        .report.remarks;
  };
  EXPECT_TRUE(remarks("dgx-h100", "fa2", "flash").empty());
  EXPECT_TRUE(remarks("dgx-h100", "cudnn", "flash").empty());
  EXPECT_TRUE(remarks("dgx-h100", "fa1", "unfused").empty());
  EXPECT_EQ(remarks("dgx-b200", "fa1", "flash"),
            std::vector<std::string>{"attention: profile b200 has no times of fa1; those of cudnn stand in"});
}

// A ring all-reduce of S bytes among n sends 2S(n-1)/n from each; sends of a pipeline count at the sender, averaged.
TEST(Report, BytesLeaveTheGpuOnce) {
  const Prediction ddp = predicted("{data: 8, precision: bf16, gradient_precision: fp32}");
  std::int64_t weights = 0;
  for (const Block& b : ddp.plan.blocks) {
    if (b.role == BlockRole::state) weights += b.buffers[2].bytes;  // gradients
  }
  ASSERT_NE(row(ddp.report, "data", "all_reduce"), nullptr);
  EXPECT_NEAR(row(ddp.report, "data", "all_reduce")->bytes_per_gpu, 2.0 * static_cast<double>(weights) * 7 / 8, 8);

  const Prediction pipeline = predicted("{pipeline: 4, data: 1, global_batch: 4}");
  const CommunicationRow* sends = row(pipeline.report, "pipeline", "send_receive");
  ASSERT_NE(sends, nullptr);
  EXPECT_DOUBLE_EQ(sends->bytes_per_gpu, 4.0 * 6 / 4 * 256 * 512 * 2);  // 4 micro-batches over 3 boundaries, both ways
}

TEST(Report, RatesFollowFromTheStep) {
  const Prediction p = predicted("{data: 4, tensor: 2, global_batch: 8, recompute: full}");
  const Report& r = p.report;
  EXPECT_DOUBLE_EQ(r.tokens_per_s * r.step_time_s, 8.0 * 256);
  EXPECT_DOUBLE_EQ(r.tokens_per_s_per_gpu * 8, r.tokens_per_s);
  EXPECT_NEAR(r.mfu * 989.4, r.model_tflops_per_gpu, 1e-9);
  // Running every layer's forward again adds a third of the layers' own flops.
  EXPECT_GT(r.hfu / r.mfu, 1.2);
  EXPECT_LT(r.hfu / r.mfu, 4.0 / 3);
}

TEST(Report, DeviceIsReservedContextAndCommunicators) {
  const Prediction p = predicted("{data: 8}");
  ASSERT_EQ(p.report.memory.ranks.size(), 1U);
  const RankMemory& rank = p.report.memory.ranks.front();
  EXPECT_GT(rank.device_peak, rank.memory.peak_reserved + 500 * 1048576);
  EXPECT_GE(rank.memory.peak_reserved, rank.memory.peak);
  EXPECT_TRUE(p.report.memory.fits);
  EXPECT_LE(p.report.memory.first_step_peak, p.report.memory.peak);
}

// A retry of an allocation waits for the device, so that the host is no longer ahead of it, and memory that waits for
// other streams is given back: 3,783 calls a step where the host went on as if it had not waited.
TEST(Report, RetriesTakeTheHostsLead) {
  const Spec spec = parse_spec(
      "{model: qwen2.5-32b, sequence: 512, cluster: {node: aws-p4d, nodes: 2, gpu: a100-sxm-80gb, "
      "host: {dram_GBps: 200, dram_GiB: 1024}}, gpus: 16, software: {profile: nanotron, compile: true, "
      "fused_optimizer: false}, strategy: {data: 8, global_batch: 160, micro_batch: 2, "
      "offload: {gradients: cpu, optimizer: cpu}, pipeline: 2, precision: bf16, recompute: none, schedule: zb-1p, "
      "sharding: zero2}}",
      "spec.yaml");
  const Report report = predict(spec).report;
  EXPECT_TRUE(report.memory.fits);
  EXPECT_GT(report.memory.device_calls, 0);
  EXPECT_LT(report.memory.device_calls, 2500);
}

// On a device that is just large enough, a step takes longer by the time of its calls for memory; on a larger one, or
// where nothing fits, no such calls count.
TEST(Report, FullDevicesTakeMemoryAgain) {
  Spec spec = predicted_spec("{data: 8, global_batch: 32, micro_batch: 4, sharding: zero3}");
  const auto at = [&](Bytes memory, double segment_us) {
    spec.cluster.gpu.memory_bytes = memory;
    spec.software.host.segment_us = segment_us;
    return predict(spec).report;
  };
  const Report roomy = at(Bytes{80} << 30, 20'000);
  EXPECT_EQ(roomy.memory.device_calls, 0);
  int remapped = 0;
  for (Bytes memory = roomy.memory.peak_device; memory > 0; memory -= Bytes{2} << 20) {
    const Report tight = at(memory, 20'000);
    if (!tight.memory.fits) {
      EXPECT_EQ(tight.memory.device_calls, 0);
      break;
    }
    const auto calls = static_cast<double>(tight.memory.device_calls);
    EXPECT_NEAR(tight.step_time_s - at(memory, 0).step_time_s, calls * 0.02, 1e-9);
    EXPECT_NEAR(std::accumulate(tight.time_s.begin(), tight.time_s.end(), 0.0), tight.step_time_s, 1e-9);
    remapped += calls > 0;
    Spec expandable = spec;
    expandable.software.memory.expandable_segments = true;
    EXPECT_EQ(predict(expandable).report.memory.device_calls, 0);
  }
  EXPECT_GT(remapped, 0);
}

// If no stage waits for the other stages between steps, steps follow each other as fast as the busiest stage allows.
TEST(Report, StaggeredStepsLeaveOutTheRamp) {
  const std::string strategy = "{pipeline: 4, data: 1, global_batch: 32, schedule: zb-h2}";
  const Report plain = predicted(strategy).report;
  const Report staggered = predicted(strategy + "\nsoftware: {profile: orrery, post_update_validation: true}").report;
  EXPECT_LT(staggered.step_time_s, 0.95 * plain.step_time_s);
  double sum = 0;
  for (const double part : staggered.time_s) sum += part;
  EXPECT_NEAR(sum / staggered.step_time_s, 1, 1e-6);
  EXPECT_DOUBLE_EQ(staggered.tokens_per_s * staggered.step_time_s, 32.0 * 256);
  EXPECT_EQ(plain.roll_back_s, 0);
  EXPECT_GT(staggered.roll_back_s, 0);
  EXPECT_LT(staggered.roll_back_s, staggered.step_time_s);
}

// The time to redo a wrong update is that of the folded plan, also if every rank is simulated by itself.
TEST(Report, SetsRightAlikeUnfolded) {
  const Spec spec = parse_spec(
      "{model: gpt2, sequence: 256, cluster: {node: dgx-a100, nodes: 1}, gpus: 4, strategy: {pipeline: 2, data: 2, "
      "global_batch: 16, schedule: zb-h2}, software: {profile: orrery, post_update_validation: true}}",
      "case");
  const double folded = predict(spec).report.roll_back_s;
  EXPECT_GT(folded, 0);
  EXPECT_DOUBLE_EQ(predict(spec, true).report.roll_back_s, folded);
}

}  // namespace
}  // namespace orrery
