#include "sim/advice/fitting.h"

#include <gtest/gtest.h>

#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

// 8 billion weights with whole states on each GPU take 16 bytes a weight: more than 80 GB.
const SpecText kWhole = {"t.yaml",
                         "model: llama-3.1-8b\nsequence: 4096\ncluster: {node: dgx-h100, nodes: 1}\n"
                         "strategy: {data: 8, global_batch: 64, sharding: none}\n"};

TEST(Fitting, ChangesFitAsTheyAreSaid) {
  const std::vector<FittingChange> changes = fitting_changes(kWhole, {}, "");
  ASSERT_EQ(changes.size(), 3U);
  for (const FittingChange& c : changes) {
    const Spec spec = parse_spec(kWhole.text, kWhole.path, c.set);
    const Report report = predict_report(spec, profile_for(spec, ""));
    EXPECT_TRUE(report.memory.fits);
    EXPECT_EQ(report.step_time_s, c.step_s);
    EXPECT_EQ(report.memory.peak_device, c.peak);
    EXPECT_EQ(spec.gpus, 8);
  }
  EXPECT_EQ(changes.front().set, (std::vector<std::string>{"strategy.sharding=fsdp"}));
}

TEST(Fitting, AsksForMoreGpusWhereNothingElseHelps) {
  const SpecText huge = {"t.yaml",
                         "model: llama-3.1-405b\nsequence: 8192\ncluster: {node: dgx-h100, nodes: 8}\n"
                         "strategy: {tensor: 8, data: 8, global_batch: 64, sharding: fsdp, recompute: full}\n"};
  const std::vector<FittingChange> changes = fitting_changes(huge, {}, "");
  ASSERT_FALSE(changes.empty());
  EXPECT_EQ(changes.back().set.front().find("cluster.nodes="), 0U);
}

// 90 GB of a teacher's experts lie on every GPU unless ranks share them out, whatever is sharded of the student.
TEST(Fitting, SharesOutATeachersExperts) {
  const SpecText taught = {
      "t.yaml",
      "model: {layers: 2, hidden: 512, heads: 8, feed_forward: 1024, vocab: 1024}\nteacher: {layers: "
      "4, hidden: 4096, heads: 32, feed_forward: 1024, vocab: 1024, moe: {experts: 64, top_k: 2, "
      "feed_forward: 14336}}\nsequence: 512\ncluster: {node: dgx-h100, nodes: 1}\nsoftware: "
      "orrery\nstrategy: {data: 8, global_batch: 8, sharding: none}\n"};
  bool shared_out = false;
  for (const FittingChange& c : fitting_changes(taught, {}, ""))
    shared_out = shared_out || c.set == std::vector<std::string>{"strategy.expert=2"};
  EXPECT_TRUE(shared_out);
}

TEST(Fitting, TextShowsWhatToType) {
  const std::string text = fitting_text({{{"strategy.sharding=zero1"}, 2.0, Bytes{60} << 30}}, 1.6, {});
  EXPECT_NE(text.find("--set strategy.sharding=zero1"), std::string::npos);
  EXPECT_NE(text.find("+25.0 %"), std::string::npos);
  EXPECT_EQ(fitting_text({}, 1, {}), "");
}

}  // namespace
}  // namespace orrery
