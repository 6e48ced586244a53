// The curve that traces and the viewer draw, against the report's peaks.
#include "sim/memory/memory_curve.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/schedule/schedules.h"
#include "models/spec/sharding.h"
#include "sim/predict/predict.h"
#include "tests/models/plans.h"

namespace orrery {
namespace {

Bytes held_by(const MemorySample& s) { return std::accumulate(s.bytes.begin(), s.bytes.end(), Bytes{0}); }

// The largest sample of each slot between two times.
std::map<std::uint32_t, Bytes> most(const std::vector<MemorySample>& samples, Picoseconds from, Picoseconds to) {
  std::map<std::uint32_t, Bytes> result;
  for (const MemorySample& s : samples) {
    if (s.time >= from && s.time < to) result[s.slot] = std::max(result[s.slot], held_by(s));
  }
  return result;
}

std::vector<MemorySample> samples_of(const Spec& spec, const Prediction& p) {
  return memory_samples(spec, p.plan, p.costs, p.trace, p.profile);
}

void expect_the_reports_peak(const std::string& strategy, const std::string& software = "profile: orrery") {
  const Spec spec =
      test::spec_of("layers: 4, hidden: 512, heads: 8, feed_forward: 2048, vocab: 8192, tied_embeddings: false",
                    strategy, 256, software);
  const Prediction p = predict(spec);
  const auto peaks = most(samples_of(spec, p), 0, std::numeric_limits<Picoseconds>::max());
  for (std::uint32_t s = 0; s < p.report.memory.ranks.size(); ++s) {
    const Bytes peak = p.report.memory.ranks[s].memory.peak;
    EXPECT_EQ(peaks.count(s) > 0 ? peaks.at(s) : 0, peak) << strategy << " " << software << " slot " << s;
  }
}

TEST(MemoryCurve, PeaksAsTheReportSays) {
  for (const ShardingRow& row : sharding_rows()) {
    if (row.servers) continue;
    for (const char* software : {"profile: orrery", "profile: pytorch-fsdp", "profile: megatron-core"})
      expect_the_reports_peak(fmt::format("data: 4, sharding: {}, global_batch: 8", row.name), software);
  }
  for (const ScheduleRow& row : schedule_rows()) {
    if (row.copies > 2) continue;
    expect_the_reports_peak(fmt::format("pipeline: 2, data: 2, schedule: {}, {}clip: 0, global_batch: 16", row.name,
                                        row.chunks == 0 ? "virtual_stages: 2, " : ""),
                            "profile: megatron-core");
  }
  for (const char* offload : {"optimizer: cpu", "optimizer: cpu, gradients: cpu", "activations: cpu"})
    expect_the_reports_peak(fmt::format("data: 4, sharding: zero2, global_batch: 8, offload: {{{}}}", offload));
}

// The first step may need more memory than later ones, where an update is delayed by a step.
TEST(MemoryCurve, PeaksWhereTheFirstStepDoes) {
  const Spec spec = parse_spec(
      "model: {layers: 16, hidden: 4096, heads: 32, kv_heads: 4, feed_forward: 12288, gated: false, bias: true, "
      "parallel_block: true, vocab: 50257}\nsequence: 512\nsoftware: megatron-core-mlperf\n"
      "cluster: {gpu: h200-sxm, gpus_per_node: 4, nodes: 32, nics: 1, nic_Gbps: 100, fabric: roce, host: {dram_GiB: "
      "1024, dram_GBps: 200}}\n"
      "strategy: {tensor: 8, pipeline: 4, data: 4, schedule: zb-1p, sharding: fsdp-grad-op, global_batch: 80, "
      "micro_batch: 1, offload: {optimizer: {device: cpu, delayed_update: true}}, overlap: {tensor: true}}\n",
      "test.yaml");
  const Prediction p = predict(spec);
  const auto peaks = most(samples_of(spec, p), 0, std::numeric_limits<Picoseconds>::max());
  for (std::uint32_t s = 0; s < p.report.memory.ranks.size(); ++s)
    EXPECT_EQ(peaks.at(s), p.report.memory.ranks[s].memory.peak) << s;
}

// Moments appear at the first update, so that the first of two steps is the lower one; times follow each other.
TEST(MemoryCurve, HoldsTheFirstStepToo) {
  Spec spec = test::spec_of("layers: 2, hidden: 512, heads: 8, feed_forward: 2048, vocab: 8192",
                            "global_batch: 16, micro_batch: 16", 512);
  spec.steps = 3;
  const Prediction p = predict(spec);
  const std::vector<MemorySample> samples = samples_of(spec, p);
  EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end(), [](const auto& a, const auto& b) {
    return std::pair(a.slot, a.time) < std::pair(b.slot, b.time);
  }));
  const Picoseconds step = p.trace.step_time;
  EXPECT_EQ(most(samples, 0, step).at(0), p.report.memory.first_step_peak);
  EXPECT_EQ(most(samples, step, 2 * step).at(0), p.report.memory.peak);
  EXPECT_EQ(most(samples, 2 * step, 3 * step).at(0), p.report.memory.peak);
  EXPECT_LT(p.report.memory.first_step_peak, p.report.memory.peak);
}

}  // namespace
}  // namespace orrery
