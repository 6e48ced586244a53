#include "sim/advice/machines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "models/base/error.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Machine machine_of(const std::string& cluster, const PriceList& prices, double tokens) {
  const std::string text = "model: gpt2\nsequence: 1024\ncluster: " + cluster +
                           "\nstrategy: {tensor: 1, pipeline: 1, context: 1, global_batch: 16, micro_batch: 1, "
                           "recompute: none, sharding: zero1, sequence_parallel: false}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 4);
  return make_machine(space, search(space, profile_for(space.base(), ""), {}), prices, tokens);
}

// A node's price is that of a node with as many GPUs, and of no other.
TEST(SearchMachines, PriceOfANodeIsOfItsOwnSize) {
  const PriceList prices = load_prices("");
  EXPECT_EQ(machine_of("{node: dgx-h100, nodes: 2}", prices, 0).purchase_usd, 270000);
  EXPECT_FALSE(machine_of("{node: dgx-h100, nodes: 2, gpus_per_node: 4, nics: 4}", prices, 0).purchase_usd);
}

TEST(SearchMachines, WhatIsNotKnownIsNoFigure) {
  const PriceList prices = load_prices("");
  const Machine known = machine_of("{node: dgx-h100, nodes: 1}", prices, 1e9);
  EXPECT_TRUE(known.days && known.cloud_usd && known.power_kW && known.energy_MWh);
  const Machine parts = machine_of("{gpu: l40s, gpus_per_node: 4, nodes: 1, nic_Gbps: 100}", prices, 1e9);
  EXPECT_TRUE(parts.days);
  EXPECT_FALSE(parts.cloud_usd || parts.usd_per_Mtoken || parts.purchase_usd || parts.power_kW || parts.energy_MWh);
  EXPECT_FALSE(machine_of("{node: dgx-h100, nodes: 1}", prices, 0).days);
}

// The unit of a column is chosen for the slowest machine; step times of the fastest still have three digits.
TEST(SearchMachines, FastAndSlowHaveThreeDigits) {
  const PriceList prices = load_prices("");
  Machine slow = machine_of("{node: dgx-h100, nodes: 1}", prices, 1e9), fast = slow;
  slow.step_s = 206.04;
  fast.step_s = 0.2384;
  const std::string text = machines_text({slow, fast}, prices, {});
  EXPECT_NE(text.find(" 206 "), std::string::npos) << text;
  EXPECT_NE(text.find(" 0.238 "), std::string::npos) << text;
}

// A machine that misses a limit is named with the reason, and is not in the table to choose from.
TEST(SearchMachines, WhatIsBeyondALimitIsNoRow) {
  const PriceList prices = load_prices("");
  Machine good = machine_of("{node: dgx-h100, nodes: 1}", prices, 1e9), late = good;
  late.name = "late-node";
  late.excluded = "12.5 days, above --deadline 3";
  late.beyond_limits = true;
  const std::string text = machines_text({good, late}, prices, {}), csv = machines_csv({good, late});
  EXPECT_NE(text.find(" x late-node: 12.5 days, above --deadline 3"), std::string::npos) << text;
  EXPECT_EQ(text.find("late-node"), text.rfind("late-node")) << text;
  EXPECT_EQ(csv.find("late-node"), std::string::npos) << csv;
}

// From one node to 131,072 GPUs, failures take ever more of the time, and the run still gets shorter.
TEST(SearchMachines, PlansFromOneNodeToTheLargestMachines) {
  const PriceList prices = load_prices("");
  std::vector<Machine> machines;
  for (const std::int64_t gpus : {8, 4096, 131072}) {
    const std::vector<std::string> few = {"search.tensor=[1,8]",     "search.context=[2,4]",
                                          "search.pipeline=[1,8]",   "search.micro_batch=[1]",
                                          "search.sharding=[zero1]", "search.recompute=[none]"};
    const Space space(load_open_spec(ORRERY_SOURCE_DIR "/examples/search-8-to-131072-gpus.yaml", few), gpus);
    machines.push_back(make_machine(space, search(space, profile_for(space.base(), ""), {}), prices, 15e12));
  }
  for (std::size_t i = 0; i < machines.size(); ++i) {
    ASSERT_EQ(machines[i].excluded, "");
    EXPECT_NEAR(machines[i].failures.between_failures * static_cast<double>(machines[i].nodes),
                kNodeHoursBetweenFailures * 3600, 1);
    if (i == 0) continue;
    EXPECT_LT(machines[i].goodput, machines[i - 1].goodput);
    EXPECT_LT(*machines[i].days, *machines[i - 1].days);
  }
  EXPECT_GT(machines.front().goodput, 0.99);
  EXPECT_LT(machines.back().goodput, 0.9);
}

TEST(SearchMachines, ReadsEveryKeyOfAPriceListAndRefusesOthers) {
  const PriceList prices = load_prices("");
  const Price* h100 = prices.find("h100-sxm");
  ASSERT_NE(h100, nullptr);
  EXPECT_TRUE(h100->cloud_low && h100->cloud_high && h100->uncertain && !h100->source.empty());
  const auto path = std::filesystem::temp_directory_path() / "orrery_search_machines_test.json";
  const auto refusal = [&](const char* row) {
    std::ofstream(path) << R"({"date": "2026-01-01", "rows": [)" << row << "]}";
    try {
      load_prices(path.string());
      return std::string();
    } catch (const Error& e) {
      return std::string(e.what());
    }
  };
  EXPECT_EQ(refusal(R"({"gpu": "x", "cloud_usd": 2})"), "");
  EXPECT_NE(refusal(R"({"gpu": "x", "cloud_us": 2})").find("row 1: unknown key cloud_us; did you mean cloud_usd"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"gpu": "x", "purchase_usd": 2})").find("needs purchase_gpus"), std::string::npos);
  EXPECT_NE(refusal(R"({"gpu": "x", "cloud_usd": -2})").find("not above 0"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace orrery
