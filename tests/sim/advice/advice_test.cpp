#include "sim/advice/advice.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "sim/predict/predict.h"
#include "tests/sim/small_space.h"

namespace orrery {
namespace {

// A compute-bound step gains from the matrix rate, by no more than all of its time; the simulated gain of twice the
// rate lies between the extrapolation of the first 10 % and half of the step.
TEST(SearchAdvice, SaysWhatWouldHelp) {
  const std::string text =
      "model: llama-3.1-8b\nsequence: 8192\ncluster: {node: dgx-h100, nodes: 2}\nstrategy: {global_batch: 32, tensor: "
      "2, "
      "context: 1, pipeline: 2, micro_batch: 1, schedule: 1f1b, recompute: none}\nsearch: {sharding: [zero1]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 16);
  const Profile profile = profile_for(space.base(), "");
  const SearchResult found = search(space, profile, {});
  const Advice a = advice(space, profile, found, 2);
  ASSERT_FALSE(a.helps.empty());
  EXPECT_EQ(a.helps.front().what, "twice the matrix rate");
  ASSERT_TRUE(a.helps.front().slope);
  EXPECT_GT(*a.helps.front().slope, 0.02);
  EXPECT_LT(*a.helps.front().slope, 0.1);
  EXPECT_GT(a.helps.front().faster, *a.helps.front().slope);
  EXPECT_LT(a.helps.front().faster, 0.5);
  for (const Effect& e : a.parts) EXPECT_TRUE(e.technique.used);
  EXPECT_EQ(a.situations.size(), 4U);
  const auto j = nlohmann::json::parse(advice_json(a));
  EXPECT_EQ(j.at("sensitivities").size(), a.helps.size());
  EXPECT_EQ(j.at("techniques").size(), a.parts.size());
  EXPECT_EQ(j.at("situations").size(), 4U);
  EXPECT_NE(advice_text(a, {}).find("% for the first 10 %"), std::string::npos);
}

// A step that waits for the host all the time: 10 % faster launches are worth 10 / 1.1 % of it, and no less for its
// length.
TEST(SearchAdvice, TellsAHostBoundStep) {
  const std::string text =
      "model: gpt2\nsequence: 1024\ncluster: {node: dgx-a100, nodes: 1}\nstrategy: {global_batch: 16, tensor: 2, "
      "context: "
      "1, pipeline: 2, micro_batch: 1, schedule: 1f1b, recompute: none, sharding: zero1}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 8);
  const Profile profile = profile_for(space.base(), "");
  const Advice a = advice(space, profile, search(space, profile, {}), 1);
  EXPECT_EQ(a.helps.front().what, "half the host's time");
  ASSERT_TRUE(a.helps.front().slope);
  EXPECT_NEAR(*a.helps.front().slope, 0.09, 0.01);
}

// With too little memory for the fastest strategy, the gain of more memory is reported.
TEST(SearchAdvice, SaysWhatMoreMemoryWouldBring) {
  const std::string text =
      "model: llama-3.1-8b\nsequence: 8192\ncluster: {node: dgx-h100, nodes: 1}\nstrategy: {global_batch: 8, tensor: "
      "8, "
      "context: 1, pipeline: 1, micro_batch: 1, sharding: zero1}\nsearch: {recompute: [none, full], recompute_layers: "
      "[null]}\n";
  const Space space(parse_open_spec(text, "t.yaml"), 8);
  const Profile profile = profile_for(space.base(), "");
  const SearchResult all = search(space, profile, {});
  ASSERT_FALSE(all.best.empty());
  SearchOptions less{};
  less.most_memory = all.best.front().report.memory.peak_device - 1;
  const SearchResult found = search(space, profile, less);
  ASSERT_FALSE(found.best.empty());
  ASSERT_TRUE(found.roomier);  // the lower bound of memory admits it, and simulation finds that it does not fit
  bool said = false;
  for (const Sensitivity& s : advice(space, profile, found, 1).helps)
    said = said || s.what.find("of memory a GPU: ") != std::string::npos;
  EXPECT_TRUE(said);
}

}  // namespace
}  // namespace orrery
