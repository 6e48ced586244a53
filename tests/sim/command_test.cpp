// The commands as functions; their behaviour as programs is tested in tests/program.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/schedule/schedules.h"
#include "sim/cli/commands.h"

namespace orrery {
namespace {

using nlohmann::json;

const std::string kSmallSpec = ORRERY_SOURCE_DIR "/tests/program/specs/small.yaml";

Common json_common(unsigned threads = 1) {
  return {.threads = threads, .json = true, .progress = [](std::string_view) {}};
}

json without_wall_time(json list) {
  for (json& row : list) {
    if (row.contains("report")) row["report"]["simulation"].erase("wall_s");
  }
  return list;
}

TEST(CommandCompare, DoesNotDependOnTheNumberOfThreads) {
  const CompareOptions options{.specs = {kSmallSpec},
                               .vary = {"strategy.micro_batch=1,2,4", "strategy.sharding=none,zero1"}};
  const json one = without_wall_time(json::parse(compare_command(options, json_common(1)).text));
  EXPECT_EQ(one.size(), 6U);
  EXPECT_EQ(one[1]["name"], "small micro_batch=1 sharding=zero1");
  for (const unsigned threads : {2U, 7U}) {
    EXPECT_EQ(one, without_wall_time(json::parse(compare_command(options, json_common(threads)).text)));
  }
}

TEST(CommandCompare, ListValuesStayWhole) {
  const CompareOptions options{.specs = {kSmallSpec}, .vary = {"strategy.recompute=none,[mlp, norm],full"}};
  const json list = json::parse(compare_command(options, json_common()).text);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[1]["name"], "small recompute=[mlp, norm]");
}

TEST(CommandCompare, ImpossibleRowsSayWhy) {
  const CompareOptions options{.specs = {kSmallSpec}, .vary = {"strategy.data=2,3"}};
  const json list = json::parse(compare_command(options, json_common()).text);
  EXPECT_TRUE(list[0].contains("report"));
  EXPECT_NE(list[1]["error"].get<std::string>().find("gpus"), std::string::npos);
  const std::string table = compare_command(options, {.progress = [](std::string_view) {}}).text;
  EXPECT_NE(table.find(list[1]["error"].get<std::string>()), std::string::npos);
}

TEST(CommandCompare, ThrowsWhenNothingIsPossible) {
  EXPECT_THROW(compare_command({.specs = {kSmallSpec}, .vary = {"strategy.sharing=none,zero1"}}, json_common()), Error);
  EXPECT_THROW(compare_command({.specs = {kSmallSpec}, .overrides = {"strategy.data=3"}}, json_common()), Error);
  EXPECT_THROW(compare_command({.specs = {kSmallSpec}, .vary = {"strategy.data"}}, json_common()), Error);
}

TEST(CommandSimulate, StatusTellsWhatDoesNotFitOnlyOnRequest) {
  SimulateOptions options{.spec = kSmallSpec, .overrides = {"model=gpt3-175b"}};
  EXPECT_EQ(simulate_command(options, json_common()).status, 0);
  options.require_fit = true;
  EXPECT_EQ(simulate_command(options, json_common()).status, kDoesNotFit);
  options.overrides.clear();
  EXPECT_EQ(simulate_command(options, json_common()).status, 0);
}

TEST(CommandExplain, NamesEveryOriginAndEveryGroup) {
  const std::string text = explain_command({.spec = kSmallSpec}, json_common()).text;
  for (const char* part :
       {"strategy.tensor", "small.yaml:8", "18Ψ", "stage 1", "(p-1)/(m+p-1)", "tensor", "data", "pipeline"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

// Batch statistics, were there any, would change with the cut; a router's do, and so do weights without flushes.
TEST(CommandExplain, NamesWhatCouplesMicroBatches) {
  const auto has = [](const std::vector<std::string>& overrides, const char* part) {
    const std::string text = explain_command({.spec = kSmallSpec, .overrides = overrides}, json_common()).text;
    return text.find(part) != std::string::npos;
  };
  const std::string experts = "model.moe={experts: 8, top_k: 2, feed_forward: 64";
  EXPECT_TRUE(has({}, "no statistics of a batch"));
  EXPECT_FALSE(has({}, "weights, which are not the newest"));
  const auto asynchronous = [&](const std::string& schedule, const char* part) {
    return has({"strategy.schedule=" + schedule, "strategy.clip=0", "model.tied_embeddings=false"}, part);
  };
  EXPECT_TRUE(asynchronous("pipedream", "every micro-batch updates them"));
  EXPECT_FALSE(asynchronous("pipedream", "no statistics of a batch"));
  EXPECT_TRUE(asynchronous("pipedream-2bw", "all meet the same weights, which are not the newest"));
  EXPECT_TRUE(
      has({experts + "}"}, "routers balance experts' load over the tokens of a micro-batch (auxiliary loss): "));
  EXPECT_TRUE(has({experts + ", capacity_factor: 1.25}"},
                  "(auxiliary loss) and drop tokens over capacity among those of a rank"));
  EXPECT_TRUE(has({experts + ", aux_loss: 0, capacity_factor: 1.25}"}, "routers drop tokens"));
  EXPECT_TRUE(has({experts + ", aux_loss: 0}"}, "no statistics of a batch"));
}

TEST(CommandList, EveryListHasRowsInBothForms) {
  for (const std::string_view name : list_names()) {
    const json list = json::parse(list_command(name, json_common()).text);
    EXPECT_FALSE(list.empty()) << name;
    for (const json& row : list) EXPECT_GE(row.size(), 2U) << name;
    EXPECT_GT(list_command(name, {}).text.size(), 100U);
  }
  EXPECT_EQ(json::parse(list_command("schedules", json_common()).text).size(), schedule_rows().size());
  EXPECT_THROW(list_command("planets", {}), Error);
}

}  // namespace
}  // namespace orrery
