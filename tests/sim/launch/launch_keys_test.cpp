#include "sim/launch/launch_keys.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

using Given = std::vector<std::pair<const char*, const char*>>;

SpecValues values(const Given& given) {
  SpecValues v;
  for (const auto& [key, value] : given) v.set(key, value, Said::stated, "x:1");
  return v;
}
SpecValues settled(const Given& given, bool shapes = false) {
  SpecValues v = values(given);
  std::vector<std::string> remarks;
  resolve_launch_keys(v, shapes, remarks);
  return v;
}
std::string remarks_of(const Given& given) {
  SpecValues v = values(given);
  std::vector<std::string> remarks;
  resolve_launch_keys(v, false, remarks);
  std::string out;
  for (const std::string& r : remarks) out += r + "\n";
  return out;
}

TEST(LaunchKeys, GpusStagesAndBatches) {
  EXPECT_EQ(settled({{"launch.nodes", "4"}, {"launch.gpus_per_node", "8"}}).number("gpus"), 32);
  EXPECT_EQ(settled({{"launch.layers_per_virtual_stage", "5"}, {"model.layers", "60"}, {"strategy.pipeline", "4"}})
                .number("strategy.virtual_stages"),
            3);
  EXPECT_EQ(settled({{"launch.accumulation", "3"}, {"strategy.micro_batch", "2"}, {"strategy.data", "4"}})
                .number("strategy.global_batch"),
            24);
  EXPECT_EQ(settled({{"launch.accumulation", "2"},
                     {"strategy.micro_batch", "4"},
                     {"strategy.global_batch", "64"},
                     {"strategy.tensor", "2"}})
                .number("gpus"),
            16);
  EXPECT_EQ(
      settled({{"launch.local_batch", "8"}, {"strategy.pipeline", "2"}, {"gpus", "8"}}).number("strategy.global_batch"),
      32);
  EXPECT_EQ(settled({{"launch.local_batch", "8"}, {"strategy.pipeline", "2"}}).number("strategy.micro_batch"), 1);
}

TEST(LaunchKeys, ShardsAndReplicas) {
  EXPECT_EQ(settled({{"launch.shard", "-1"}}).text("strategy.sharding"), "fsdp");
  EXPECT_EQ(settled({{"launch.shard", "1"}, {"launch.replicate", "4"}}).text("strategy.sharding"), "none");
  const SpecValues hybrid = settled({{"launch.shard", "8"}, {"launch.replicate", "4"}});
  EXPECT_EQ(hybrid.text("strategy.sharding"), "hsdp");
  EXPECT_EQ(hybrid.number("strategy.data"), 32);
  EXPECT_EQ(hybrid.number("strategy.shard_group"), 8);
}

// Megatron-LM's arguments.py: 4 x hidden; with a gate int(4 hidden x 2/3 / 64) x 64. 4096: 10880.
TEST(LaunchKeys, ShapesThatFollow) {
  EXPECT_EQ(settled({{"model.hidden", "6144"}}, true).number("model.feed_forward"), 24576);
  EXPECT_EQ(settled({{"model.hidden", "4096"}, {"model.gated", "true"}}, true).number("model.feed_forward"), 10880);
  EXPECT_EQ(settled({{"model.hidden", "6144"}}).find("model.feed_forward"), nullptr);
  EXPECT_EQ(settled({{"launch.moe_layer_freq", "([0]*3+[1]*58)"}}).number("model.moe.first_layer"), 3);
  EXPECT_EQ(settled({{"launch.moe_layer_freq", "2"}}).number("model.moe.every"), 2);
}

TEST(LaunchKeys, ContradictionsAreSaid) {
  EXPECT_NE(remarks_of({{"gpus", "8"}, {"strategy.tensor", "8"}, {"strategy.pipeline", "16"}})
                .find("8 GPUs cannot hold tensor 8 x pipeline 16"),
            std::string::npos);
  EXPECT_NE(remarks_of({{"strategy.data", "4"}, {"strategy.micro_batch", "4"}, {"strategy.global_batch", "24"}})
                .find("is no multiple of"),
            std::string::npos);
  EXPECT_NE(remarks_of({{"launch.accumulation", "2"},
                        {"strategy.data", "4"},
                        {"strategy.micro_batch", "4"},
                        {"strategy.global_batch", "64"}})
                .find("are 32 sequences, not 64"),
            std::string::npos);
  EXPECT_NE(remarks_of({{"launch.accumulation", "2"}}).find("cannot be used"), std::string::npos);
  EXPECT_NE(remarks_of({{"launch.nodes", "2"}}).find("how many GPUs a node has"), std::string::npos);
  EXPECT_NE(remarks_of({{"launch.batch_schedule", "0:16 1B:32"}}).find("set strategy.global_batch"), std::string::npos);
  EXPECT_EQ(remarks_of({{"gpus", "128"}, {"strategy.tensor", "8"}, {"strategy.pipeline", "16"}}), "");
}

TEST(LaunchKeys, RecomputedModules) {
  const Given given = {{"strategy.recompute", "selective"}, {"launch.recompute_modules", "core_attn mlp"}};
  EXPECT_EQ(settled(given).text("strategy.recompute"), "[attention, mlp]");
  EXPECT_EQ(
      settled(
          {{"strategy.recompute", "full"}, {"launch.recompute_method", "block"}, {"launch.recompute_num_layers", "8"}})
          .number("strategy.recompute_layers"),
      8);
}

TEST(LaunchKeys, NoLaunchKeysAreLeft) {
  for (const OptionRow& row : megatron().rows()) {
    if (!row.key.starts_with("launch.")) continue;
    SpecValues v;
    v.set(row.key, "3", Said::stated, "x:1");
    std::vector<std::string> remarks;
    resolve_launch_keys(v, true, remarks);
    EXPECT_EQ(v.find(row.key), nullptr) << row.key;
  }
}

TEST(LaunchKeys, HugeNumbersDoNotOverflow) {
  const std::string huge = "9223372036854775807";
  for (const Framework* f : {&megatron(), &torchtitan(), &nanotron(), &deepspeed(), &accelerate()}) {
    SpecValues v;
    for (const OptionRow& row : f->rows()) v.set(row.key, huge, Said::stated, "x:1");
    std::vector<std::string> remarks;
    resolve_launch_keys(v, true, remarks);
    add_launch_keys(v, *f);
  }
}

}  // namespace
}  // namespace orrery
