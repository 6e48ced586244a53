#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "sim/predict/predict.h"
#include "sim/search/report.h"
#include "sim/search/search.h"
#include "sim/search/space.h"

namespace orrery {
namespace {

// Each combination of memory tiers for optimizer, gradients and parameters has a name, from which it can be read again.
TEST(SearchOffload, NamesSayWhereStatesLie) {
  std::set<std::string_view> seen;
  for (const std::string_view name : offload_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    Offload o;
    set_offload(o, name);
    EXPECT_EQ(o.optimizer == MemoryTier::device, name == "none") << name;
  }
  EXPECT_EQ(seen.size(), 19U);
  Offload o;
  set_offload(o, "optimizer:nvme+gradients+parameters:nvme");
  EXPECT_EQ(o.optimizer, MemoryTier::nvme);
  EXPECT_EQ(o.gradients, MemoryTier::host);
  EXPECT_EQ(o.parameters, MemoryTier::nvme);
}

TEST(SearchOffload, TextSaysWhatLiesWhere) {
  MemoryPlan cell;
  EXPECT_EQ(offload_text(cell), "");
  EXPECT_TRUE(offload_overrides(cell).empty());
  cell.offload = "optimizer:nvme+parameters";
  cell.activations = "cpu";
  cell.activation_layers = 3;
  EXPECT_EQ(offload_text(cell), ", parameters+activations of 3 layers a stage on the host, optimizer on the disks");
  const std::vector<std::string> expected = {"strategy.offload.optimizer=nvme", "strategy.offload.parameters=cpu",
                                             "strategy.offload.activations=cpu",
                                             "strategy.offload.activations.layers=3"};
  EXPECT_EQ(offload_overrides(cell), expected);
}

// Offloading that the spec sets is fixed; the rest is open to the search.
TEST(SearchOffload, GivenPlacesAreFixed) {
  const Space space(
      parse_open_spec("model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8, tensor: "
                      "1, context: 1, micro_batch: 1, sharding: zero3, offload: {optimizer: cpu, "
                      "activations: {device: cpu, layers: 2}}}\nsearch: {recompute: [none]}\n",
                      "t.yaml"),
      8);
  std::set<std::string_view> seen;
  for (const RankLayout& layout : space.layouts()) {
    for (const MemoryPlan& cell : space.cells(layout)) {
      seen.insert(cell.offload);
      EXPECT_EQ(cell.activations, "cpu");
      EXPECT_EQ(cell.activation_layers, 2);
    }
  }
  EXPECT_TRUE(seen.contains("optimizer"));
  EXPECT_TRUE(seen.contains("optimizer+gradients+parameters"));
  EXPECT_FALSE(seen.contains("optimizer+gradients:nvme+parameters")) << "the host's memory holds it";
  EXPECT_FALSE(seen.contains("none"));
  EXPECT_FALSE(seen.contains("optimizer:nvme"));
  EXPECT_FALSE(space.keeps_activations());
}

// A search that is stopped at its first strategy has not counted the others yet.
TEST(SearchText, SaysThatStrategiesWereNotCounted) {
  const Space space(
      parse_open_spec("model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8}\n", "t.yaml"), 8);
  SearchResult r;
  r.counts.simulated = 1;
  EXPECT_NE(search_text(space, r, {}).find("stopped before all strategies were counted; 1 simulated"),
            std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(search_json(space, r)).at("pruned"), 0);
}

// If anything may be offloaded, the assumptions of a proof are stated.
TEST(SearchOffload, ProofsSayWhatTheyAssumeWhereSomethingMayLeave) {
  const auto assumed = [](const std::string& search) {
    const Space space(parse_open_spec("model: gpt2\nsequence: 1024\ncluster: dgx-a100\nstrategy: {global_batch: 8, "
                                      "tensor: 1, context: 1, pipeline: 1, micro_batch: 1, recompute: none, sharding: "
                                      "zero1}\nsearch: {" +
                                          search + "}\n",
                                      "t.yaml"),
                      8);
    const SearchResult r = orrery::search(space, profile_for(space.base(), ""), {});
    const std::string said = nlohmann::json::parse(search_json(space, r)).at("assumed");
    EXPECT_NE(search_text(space, r, {}).find("no better" + (said.empty() ? "\n" : ", if " + said)), std::string::npos);
    return !said.empty();
  };
  EXPECT_FALSE(assumed("offload: [none], offload_activations: [none]"));
  EXPECT_TRUE(assumed("offload: [none], offload_activations: [none, cpu]"));
  EXPECT_TRUE(assumed("offload: [none, optimizer], offload_activations: [none]"));
}

// Disks are slower than the host in every way, so they are of use where hosts are full, or where they are asked for.
TEST(SearchOffload, DisksAreSearchedWhereHostsAreFullOrTheyAreListed) {
  const auto disks = [](const std::string& model, const std::string& search) {
    const Space space(parse_open_spec("model: " + model +
                                          "\nsequence: 1024\ncluster: dgx-2\nstrategy: {global_batch: 16, context: 1, "
                                          "sharding: zero3, schedule: 1f1b, micro_batch: 1}\nsearch: {" +
                                          search + "}\n",
                                      "t.yaml"),
                      16);
    bool found = false;
    for (const RankLayout& layout : space.layouts()) {
      for (const MemoryPlan& cell : space.cells(layout)) found |= cell.offload.find("nvme") != std::string_view::npos;
    }
    const auto names = space.left_out();
    const auto named = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    EXPECT_NE(found, named("offload to disks") || named("offload"));
    return found;
  };
  EXPECT_FALSE(disks("gpt2", "recompute: [full]"));
  EXPECT_TRUE(disks("gpt3-175b", "recompute: [full]"));
}

}  // namespace
}  // namespace orrery
