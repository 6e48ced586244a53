#include "sim/cost/host_work.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Op copy(Bytes bytes, MemoryTier from, MemoryTier to) { return {.name = "copy", .work = PlaceCopy{bytes, from, to}}; }

Seconds time_of(const Op& op, const Cluster& cluster) { return host_work(op, Plan{}, cluster, 0).seconds; }

TEST(HostWork, CopiesRunAtTheirLinksRates) {
  const Cluster c = find_cluster("dgx-2", 1);
  EXPECT_NEAR(time_of(copy(12'600'000'000, MemoryTier::device, MemoryTier::host), c), 1, 1e-9);  // 0.8 of 15.75 GB/s
  EXPECT_NEAR(time_of(copy(25'000'000'000, MemoryTier::nvme, MemoryTier::host), c), 1, 1e-9);
  EXPECT_NEAR(time_of(copy(20'000'000'000, MemoryTier::host, MemoryTier::nvme), c), 1, 1e-9);
}

TEST(HostWork, CopiesAreNoFasterThanTheHostsMemory) {
  Cluster c = find_cluster("dgx-2", 1);
  const Op down = copy(12'600'000'000, MemoryTier::device, MemoryTier::host);
  c.host->dram_GBps = 6.3;
  EXPECT_NEAR(time_of(down, c), 2, 1e-9);
  c.host->dram_GBps = 0;  // not known
  EXPECT_NEAR(time_of(down, c), 1, 1e-9);
}

// ZeRO-Offload, table 4: 10 B parameters in 2.57 s on two Xeon 8168, those of a DGX-2.
TEST(HostWork, UpdatesAsFastAsPublished) {
  const Op update = {.name = "update",
                     .work = Update{.elements = 10'000'000'000, .gradient = 4, .master = 4, .moment = 4, .forward = 2},
                     .lane = LaneKind::cpu};
  EXPECT_NEAR(time_of(update, find_cluster("dgx-2", 1)), 2.57, 0.15 * 2.57);
}

// An update on the host needs a known memory bandwidth; a copy runs at the speed of the link where nothing is known of
// the host.
TEST(HostWork, UpdatesNeedAHost) {
  Cluster c = find_cluster("dgx-2", 1);
  c.stores[index_of(MemoryTier::nvme)].reset();
  EXPECT_THROW(time_of(copy(1, MemoryTier::nvme, MemoryTier::host), c), Error);
  const Op update = {.work = Update{.elements = 1000}, .lane = LaneKind::cpu};
  EXPECT_GT(time_of(update, c), 0);
  const Seconds copied = time_of(copy(1 << 20, MemoryTier::device, MemoryTier::host), c);
  c.host.reset();
  EXPECT_EQ(time_of(copy(1 << 20, MemoryTier::device, MemoryTier::host), c), copied);
  EXPECT_THROW(time_of(update, c), Error);
}

Spec gpt(const std::string& strategy, const std::string& cluster = "{node: dgx-2, nodes: 1}") {
  return parse_spec(
      "model: {name: gpt, layers: 8, hidden: 2048, heads: 16, feed_forward: 8192, vocab: 32000, gated: false}\n"
      "sequence: 1024\ncluster: " +
          cluster + "\nsoftware: orrery\nstrategy: {precision: fp16, gradient_precision: fp16, " + strategy + "}\n",
      "case");
}

double seconds_in(const Prediction& p, LaneKind lane) {
  Picoseconds sum = 0;
  for (TaskId t = p.plan.classes[0].begin; t < p.plan.classes[0].end; ++t) {
    if (p.plan.op_of(t).lane == lane) sum += p.trace.spans[t].ended - p.trace.spans[t].matched;
  }
  return seconds(sum);
}

// Two devices on one switch have half of its link each; and all ranks of a node share its processors, so that updating
// N shards takes as long as updating the whole on one rank.
TEST(HostWork, NeighboursShareALink) {
  const std::string strategy = "sharding: zero2, micro_batch: 1, offload: {optimizer: cpu, gradients: cpu}, data: ";
  const Prediction one = predict(gpt(strategy + "1")), two = predict(gpt(strategy + "2")),
                   four = predict(gpt(strategy + "4"));
  EXPECT_NEAR(seconds_in(two, LaneKind::h2d) / seconds_in(one, LaneKind::h2d), 1, 0.02);  // half as much, half as fast
  EXPECT_NEAR(seconds_in(four, LaneKind::h2d) / seconds_in(one, LaneKind::h2d), 0.5, 0.02);  // two switches
  EXPECT_NEAR(seconds_in(four, LaneKind::cpu) / seconds_in(one, LaneKind::cpu), 1, 0.02);
}

// ZeRO-Infinity (2104.07857, equation 6): compute / (compute + what moves) where nothing overlaps. What overlaps
// perfectly takes as long as the longer of the two.
TEST(HostWork, EfficiencyIsThePublishedOne) {
  const std::string rest =
      "data: 1, sharding: zero3, recompute: full, clip: 0, offload: {optimizer: cpu, parameters: cpu}";
  for (const double gbps : {4.0, 16.0, 64.0}) {
    Spec apart = gpt(rest + ", overlap: {parameter_gather: false}"), over = gpt(rest +
                                                                                ", prefetch_units: 2, "
                                                                                "units_in_flight: 8");
    apart.cluster.gpu.pcie_GBps = over.cluster.gpu.pcie_GBps = gbps;
    const Prediction p = predict(apart), q = predict(over);
    const double compute = seconds_in(p, LaneKind::compute), update = seconds_in(p, LaneKind::cpu);
    const double moved = seconds_in(p, LaneKind::h2d);
    EXPECT_NEAR(p.report.step_time_s / (compute + moved + update), 1, 0.05) << gbps;
    EXPECT_GE(1.02 * q.report.step_time_s, std::max(compute, moved) + update) << gbps;
    EXPECT_LT(q.report.step_time_s, 0.98 * p.report.step_time_s) << gbps;
  }
}

// Beside a long enough step a delayed update costs only the upload of the parameters.
TEST(HostWork, DelayedUpdateHidesBesideTheStep) {
  const std::string strategy =
      "data: 1, micro_batch: 8, global_batch: 32, recompute: full, offload: {gradients: cpu, optimizer: ";
  const Prediction prompt = predict(gpt(strategy + "cpu}"));
  const Prediction delayed = predict(gpt(strategy + "{device: cpu, delayed_update: true}}"));
  Picoseconds raised = 0;
  for (TaskId t = 0; t < delayed.plan.task_count(); ++t) {
    if (delayed.plan.op_of(t).name == "parameters up")
      raised += delayed.trace.spans[t].ended - delayed.trace.spans[t].matched;
  }
  EXPECT_NEAR(delayed.report.step_time_s / (seconds_in(delayed, LaneKind::compute) + seconds(raised)), 1, 0.05);
  EXPECT_GT(prompt.report.step_time_s, seconds_in(prompt, LaneKind::compute) + seconds_in(prompt, LaneKind::cpu));
  EXPECT_LT(delayed.report.step_time_s, prompt.report.step_time_s);
}

// 13 B parameters train on one V100 with 32 GB (2101.06840, table 2 and figure 7), and not without the host.
TEST(HostWork, ThirteenBillionParametersFitOneDevice) {
  const std::string model =
      "model: {name: gpt-13b, layers: 65, hidden: 4096, heads: 32, feed_forward: 16384, vocab: 50257, gated: false, "
      "positions: learned, norm: layernorm, bias: true, tied_embeddings: true}\nsequence: 1024\ncluster: {node: dgx-2, "
      "nodes: 1}\ngpus: 1\nsoftware: deepspeed-megatron-2021\n";
  const std::string strategy =
      "strategy: {precision: fp16, gradient_precision: fp16, data: 1, micro_batch: 1, recompute: full";
  const Report with =
      predict(parse_spec(model + strategy + ", offload: {optimizer: cpu, gradients: cpu}}\n", "with")).report;
  const Report without = predict(parse_spec(model + strategy + "}\n", "without")).report;
  EXPECT_TRUE(with.memory.fits) << with.memory.peak_device;
  EXPECT_FALSE(without.memory.fits);
  EXPECT_NEAR(static_cast<double>(with.memory.tier_peak[index_of(MemoryTier::host)]), 14 * 13.3e9, 0.1 * 14 * 13.3e9);
}

// A trillion parameters on one DGX-2 with its disks and without tensor parallelism (2104.07857, table 1 and figure 6a):
// 128 layers of 25,600, whose weights and gradients have no room at once but in tiles.
TEST(HostWork, ATrillionParametersFitOneNodeWithDisks) {
  const auto predicted = [](const std::string& device, int tiles) {
    return predict(parse_spec("model: megatron-1t\nsequence: 1024\ncluster: {node: dgx-2, nodes: 1}\nsoftware: "
                              "deepspeed-megatron-2021\nstrategy: {precision: fp16, gradient_precision: fp16, "
                              "sharding: zero3, data: 16, micro_batch: 1, "
                              "recompute: full, offload: {optimizer: " +
                                  device + ", gradients: " + device + ", parameters: " + device +
                                  fmt::format(", activations: cpu, tiling: {}}}}}\n", tiles),
                              "case"))
        .report;
  };
  const Report disks = predicted("nvme", 4), host = predicted("cpu", 4);
  EXPECT_FALSE(predicted("nvme", 1).memory.fits);
  EXPECT_TRUE(disks.memory.fits) << disks.memory.peak_device << ' '
                                 << disks.memory.tier_peak[index_of(MemoryTier::host)] << ' '
                                 << disks.memory.tier_peak[index_of(MemoryTier::nvme)];
  EXPECT_FALSE(host.memory.fits);
  EXPECT_GT(host.memory.tier_peak[index_of(MemoryTier::host)], host.memory.tier_capacity[index_of(MemoryTier::host)]);
}

}  // namespace
}  // namespace orrery
