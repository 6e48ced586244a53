// Loading of strategy.stage_replicas, given or planned.
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/spec/spec.h"

namespace orrery {
namespace {

Spec read(const std::string& strategy, const std::string& more = "gpus: 4") {
  return parse_spec(
      "model: {name: m, layers: 8, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\nsequence: 1024\n"
      "cluster: {node: dgx-a100, nodes: 1}\n" +
          more + "\nstrategy: {" + strategy + "}\n",
      "spec.yaml");
}

std::string replicas_refused(const std::string& strategy) {
  try {
    read(strategy);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(StageReplicas, CountTheRanksOfAPipeline) {
  const Spec spec = read("pipeline: 2, stage_replicas: [3, 1], schedule: dapple, micro_batch: 3, global_batch: 12");
  EXPECT_EQ(spec.strategy.data, 1);
  EXPECT_EQ(spec.strategy.places(), 4);
  EXPECT_EQ(spec.strategy.first_position(1), 3);
  EXPECT_EQ(spec.strategy.micro_batches(), 4);
  EXPECT_EQ(read("pipeline: 2, stage_replicas: [1, 1], micro_batch: 1, global_batch: 8").strategy.data, 2);
}

TEST(StageReplicas, ArePlannedTogetherWithTheCut) {
  const Spec spec = read("stage_replicas: planned, schedule: dapple, micro_batch: 4, global_batch: 64");
  const Strategy& s = spec.strategy;
  EXPECT_EQ(s.places(), 4);
  EXPECT_EQ(s.pipeline, static_cast<std::int64_t>(s.stage_replicas.size()));
  EXPECT_EQ(s.pipeline, static_cast<std::int64_t>(s.stage_layers.size()));
  int said = 0;
  for (const Origin& o : spec.origins) said += o.from == "DAPPLE's planner" ? 1 : 0;
  EXPECT_EQ(said, 3);
  const Spec two = read("stage_replicas: planned, pipeline: 2, schedule: dapple, micro_batch: 4, global_batch: 64");
  EXPECT_EQ(two.strategy.pipeline, 2);
  const Spec copies = read("stage_replicas: planned, data: 2, schedule: dapple, micro_batch: 2, global_batch: 64");
  EXPECT_EQ(copies.strategy.places(), 2);
}

TEST(StageReplicas, OfOneRankEachAreStagesAsEverywhere) {
  EXPECT_TRUE(read("pipeline: 4, stage_replicas: [1, 1, 1, 1], global_batch: 8").strategy.stage_replicas.empty());
}

TEST(StageReplicas, SayWhatIsWrong) {
  EXPECT_EQ(replicas_refused("pipeline: 2, stage_replicas: [3, 1], micro_batch: 2, global_batch: 8"),
            "spec.yaml:5: stage_replicas: 3 does not divide micro_batch: 2, which replicas share");
  EXPECT_EQ(replicas_refused("pipeline: 2, stage_replicas: [4], micro_batch: 4"),
            "spec.yaml:5: strategy.stage_replicas: 1 entries for pipeline: 2; give each stage a count, or say planned");
  EXPECT_EQ(replicas_refused("pipeline: 2, stage_replicas: [4, 0], micro_batch: 4"),
            "spec.yaml:5: strategy.stage_replicas: 0 is not between 1 and 10000000");
  EXPECT_NE(replicas_refused("pipeline: 9, stage_replicas: planned, micro_batch: 4").find("9 stages for 8 layers"),
            std::string::npos);
  EXPECT_NE(replicas_refused("stage_replicas: planned, stage_layers: [8], micro_batch: 4").find("leave stage_layers"),
            std::string::npos);
}

}  // namespace
}  // namespace orrery
