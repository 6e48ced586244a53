#include "viz/predicted/fabric.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/load/load_spec.h"

using namespace orrery;

TEST(Fabric, ACurveIsOfKindsOfCommunication) {
  const Spec spec = parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 2}, software: megatron-core, steps: 2, strategy: "
      "{tensor: 2, pipeline: 2, data: 4, global_batch: 16}}",
      "fabric.yaml");
  const auto step = predict_step(spec);
  const std::vector<FabricLoad> loads = fabric_of(*step);
  ASSERT_EQ(loads.size(), 2u);
  for (const FabricLoad& load : loads) {
    EXPECT_EQ(load.curve.series.size(), load.kinds.size());
    EXPECT_EQ(load.curve.values.size(), load.kinds.size() * load.curve.times.size());
    EXPECT_TRUE(std::is_sorted(load.curve.times.begin(), load.curve.times.end()));
    EXPECT_GT(load.curve.times.back(), step->prediction.trace.step_time);  // both steps
  }
  EXPECT_EQ(loads[0].name, "NIC");
  EXPECT_EQ(loads[1].name, "NVLink");
  EXPECT_NE(std::find(loads[1].kinds.begin(), loads[1].kinds.end(), Kind::tensor), loads[1].kinds.end());
}

TEST(Fabric, ALoadIsSaidInItsUnits) {
  FabricLoad load{"NIC", "stage 0, sending", 50, 0.25, 0.9, {Kind::data, Kind::pipeline}, {}};
  load.curve = {"NIC", {"data", "pipeline"}, {10'000'000, 20'000'000}, {0.5, 0.25, 0, 0}};
  EXPECT_EQ(load_text(load, 0.9), "45.0 GB/s, 90 %");
  EXPECT_EQ(load_at(load, 15'000'000),
            (std::vector<std::string>{"the fullest NIC (stage 0, sending), 50 GB/s", "at 15.00 us: 37.5 GB/s, 75 %",
                                      "data: 25.0 GB/s, 50 %", "pipeline: 12.5 GB/s, 25 %"}));
  EXPECT_EQ(load_at(load, 5'000'000).back(), "at 5.00 us: 0.0 GB/s, 0 %");
  load.capacity_GBps = 0;
  EXPECT_EQ(load_text(load, 0.9), "90 %");
}
