#include "sim/report/link_load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/sim/tiny_plan.h"

namespace orrery {
namespace {

constexpr Picoseconds kLoadTime = 1'000'000;

Cluster cluster_of_loads() {
  return parse_spec("{model: gpt2, sequence: 1024, cluster: {node: dgx-h100, nodes: 2}, strategy: {data: 16}}",
                    "loads.yaml")
      .cluster;
}

double sum_at(const LinkLoad& load, std::size_t sample) {
  double sum = 0;
  for (std::size_t g = 0; g < load.groups.size(); ++g) sum += load.shares[sample * load.groups.size() + g];
  return sum;
}

// One transfer takes half of the NIC for its whole time, then the NIC is idle for as long.
TEST(LinkLoad, OfOneTransferIsItsShare) {
  TinyPlan p;
  const auto move = p.op("move", LaneKind::data_reduce, {.duration = kLoadTime, .nic = kFullRate / 2});
  const auto work = p.op("work", LaneKind::compute, {.duration = kLoadTime});
  p.slot(0);
  p.task(work, {p.task(move)});
  p.finish();
  const Trace trace = p.run();
  const std::vector<LinkLoad> loads = link_loads(p.plan(), p.timing(), trace, cluster_of_loads());
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].name, "NIC");
  EXPECT_EQ(loads[0].of, "slot 0, sending");
  EXPECT_DOUBLE_EQ(loads[0].capacity, 48e9);  // of 50 GB/s, what the PCIe link of the NIC lets through
  EXPECT_EQ(loads[0].times, (std::vector<Picoseconds>{0, kLoadTime}));
  EXPECT_EQ(loads[0].shares, (std::vector<double>{0.5, 0}));
  EXPECT_DOUBLE_EQ(loads[0].peak, 0.5);
  EXPECT_DOUBLE_EQ(loads[0].mean, 0.25);
}

// Two transfers that would each take all of a NIC have half of it each, and the NIC is never more than full; the one
// that is longer has all of it when the other has ended.
TEST(LinkLoad, OfTransfersThatShareALinkIsAtMostAll) {
  TinyPlan p;
  const auto one = p.op("one", LaneKind::data_reduce, {.duration = kLoadTime, .nic = kFullRate});
  const auto two = p.op("two", LaneKind::send_next, {.duration = 3 * kLoadTime, .nic = kFullRate});
  p.slot(0);
  p.task(one);
  p.task(two);
  p.finish();
  p.cost(one).group = Dimension::data;
  p.cost(two).group = Dimension::pipeline;
  SlotLinks links;
  links.nic_out = 0;
  links.nic_in = 1;
  links.flows.fill(1);
  p.timing().links = {links};
  p.timing().link_count = 2;
  const std::vector<LinkLoad> loads = link_loads(p.plan(), p.timing(), p.run(), cluster_of_loads());
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].groups, (std::vector<Dimension>{Dimension::data, Dimension::pipeline}));
  EXPECT_EQ(loads[0].times, (std::vector<Picoseconds>{0, 2 * kLoadTime, 4 * kLoadTime}));
  EXPECT_EQ(loads[0].shares, (std::vector<double>{0.5, 0.5, 0, 1, 0, 0}));
  EXPECT_DOUBLE_EQ(loads[0].mean, 1);
}

// The share that a transfer takes of NVLink is one of the rate that NCCL counts for it: 20.6 GB/s for each of 18 links.
TEST(LinkLoad, OfNvlinkIsAShareOfItsRateInNccl) {
  TinyPlan p;
  const auto move = p.op("move", LaneKind::tensor, {.duration = kLoadTime, .nvlink = kFullRate});
  p.slot(0);
  p.task(move);
  p.finish();
  const std::vector<LinkLoad> loads = link_loads(p.plan(), p.timing(), p.run(), cluster_of_loads());
  ASSERT_EQ(loads.size(), 1u);
  EXPECT_EQ(loads[0].name, "NVLink");
  EXPECT_DOUBLE_EQ(loads[0].capacity, 18 * 20.6e9);
}

// Whatever transfers do to each other, each moves what it would move alone, and no link is more than full.
TEST(LinkLoad, OfAStepIsThatOfAllItsTransfers) {
  const Spec spec = parse_spec(
      "{model: gpt3-175b, sequence: 2048, cluster: {node: dgx-a100, nodes: 16, network: {leaf: {nodes: 2, uplinks: "
      "1}}}, strategy: {tensor: 8, pipeline: 4, data: 4, sharding: zero1, micro_batch: 1, global_batch: 32}}",
      "loads.yaml");
  const Prediction p = predict(spec);
  const std::vector<LinkLoad> loads = link_loads(p.plan, p.costs.timing, p.trace, p.cluster);
  std::map<std::string, double> mean;
  for (const LinkLoad& load : loads) {
    mean[load.name] = load.mean;
    for (std::size_t i = 0; i < load.times.size(); ++i) EXPECT_LE(sum_at(load, i), 1 + 1e-6) << load.name;
    EXPECT_GT(load.capacity, 0) << load.name;
  }
  ASSERT_TRUE(mean.contains("NIC") && mean.contains("NVLink") && mean.contains("uplinks of 16 GPUs"));
  double most = 0;
  for (std::uint32_t slot = 0; slot < p.plan.classes.size(); ++slot) {
    double sum = 0;
    for (TaskId t = p.plan.classes[slot].begin; t < p.plan.classes[slot].end; ++t) {
      const OpTiming& cost = p.costs.timing.of(slot, p.plan.tasks[t].op);
      if (cost.out) sum += static_cast<double>(cost.nvlink) / kFullRate * static_cast<double>(cost.duration);
    }
    most = std::max(most, sum / static_cast<double>(p.trace.step_time));
  }
  EXPECT_NEAR(mean["NVLink"], most, 1e-4 * most);
}

}  // namespace
}  // namespace orrery
