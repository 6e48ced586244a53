// Keys of what trains, when gradients are reduced, units, optimizers and packed samples: values and refusals.
#include <gtest/gtest.h>

#include "tests/models/plans.h"

namespace orrery {
namespace {

std::string refused(const std::string& model, const std::string& strategy, const std::string& sequence = "32") {
  try {
    parse_spec(fmt::format("model: {{{}{}}}\nsequence: {}\ncluster: {{node: dgx-h100, nodes: 8}}\nstrategy: {{{}}}\n",
                           test::kSmall, model, sequence, strategy),
               "t.yaml");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(TrainingKeys, AreRead) {
  const Spec spec = test::spec_of(std::string(test::kSmall) + ", lora: {rank: 8, targets: [qkv, mlp], weights: nf4}",
                                  "data: 4, sharding: zero3, no_sync: true, units: [[0, 3], [1, 2]], optimizer: {name: "
                                  "adamw, states: 8bit}");
  ASSERT_TRUE(spec.model.lora.has_value());
  EXPECT_EQ(spec.model.lora->rank, 8);
  EXPECT_TRUE(spec.model.lora->qkv && !spec.model.lora->out && spec.model.lora->mlp && spec.model.lora->nf4);
  EXPECT_EQ(spec.strategy.no_sync, true);
  EXPECT_EQ(spec.strategy.units.lists, (std::vector<std::vector<std::int64_t>>{{0, 3}, {1, 2}}));
  EXPECT_TRUE(spec.strategy.optimizer.eight_bit);
  EXPECT_TRUE(test::spec_of(test::kSmall, "data: 2, sharding: fsdp, units: model").strategy.units.model);
  EXPECT_EQ(test::spec_of(test::kSmall, "data: 2, sharding: fsdp, units: 4").strategy.units.layers, 4);
  EXPECT_TRUE(test::spec_of(test::kSmall, "").strategy.units.by_layer());
  EXPECT_FALSE(test::spec_of(test::kSmall, "").strategy.no_sync.has_value());
}

TEST(TrainingKeys, SequencesMayHaveDocuments) {
  const Spec spec = parse_spec(
      "model: gpt2\nsequence: {length: 512, documents: {mean: 100}}\ncluster: {node: dgx-h100, nodes: 1}\n", "t.yaml");
  EXPECT_EQ(spec.sequence, 512);
  ASSERT_TRUE(spec.documents.has_value());
  EXPECT_EQ(spec.documents->mean, 100);
  EXPECT_EQ(spec.documents->max, 512);
  const Spec set = parse_spec("model: gpt2\nsequence: 512\ncluster: {node: dgx-h100, nodes: 1}\n", "t.yaml",
                              {"sequence.documents={mean: 50, max: 60}"});
  EXPECT_EQ(set.sequence, 512);
  EXPECT_EQ(set.documents->max, 60);
}

// Over one rank nothing is sharded, and nothing is transferred in few bits.
TEST(TrainingKeys, OneRankNarrowsNothing) {
  const Spec spec = test::spec_of(test::kSmall, "data: 1, sharding: zero3, zero_quantize: {weights: int8}");
  EXPECT_EQ(spec.strategy.sharding, Sharding::none);
  EXPECT_FALSE(spec.strategy.zero_quantize.any());
}

TEST(TrainingKeys, RefusalsSayWhatToDo) {
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_TRUE(text.find(part) != std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  };
  has(refused("", "data: 2, sharding: fsdp, units: none"), "t.yaml:4: strategy.units: layer, model");
  has(refused("", "data: 2, sharding: fsdp, units: [[0, 9]]"), "units: layer 9 is not between 0 and 7");
  has(refused("", "data: 2, sharding: fsdp, units: [[0, 1], [1, 2]]"), "units: layer 1 is in two units");
  has(refused("", "data: 2, sharding: fsdp, units: [[]]"), "units: a list is empty");
  has(refused("", "data: 2, sharding: fsdp, units: 0"), "units: 0 is not a number of layers");
  has(refused("", "data: 2, sharding: zero1, units: model"), "choose zero3 or fsdp");
  has(refused("", "data: 2, sharding: fsdp, zero_quantize: {weights: int8}"), "choose zero3");
  has(refused(", lora: {}", ""), "model.lora.rank: missing");
  has(refused(", lora: {rank: 0}", ""), "model.lora.rank: 0 is not between 1");
  has(refused(", lora: {rank: 4, targets: [kqv]}", ""), "qkv");
  has(refused(", frozen: [embeddings]", ""), "embedding");
  has(refused(", frozen: [embedding, head, attention, mlp, norm]", ""), "nothing is left that trains");
  has(refused(", frozen: [embedding, attention, mlp, norm]", "pipeline: 2"), "choose pipeline: 1");
  has(refused("", "", "{length: 64, documents: {mean: 0}}"), "sequence.documents.mean: 0 is not between 1");
  has(refused("", "", "{length: 64, documents: {mean: 10, max: 65}}"), "sequence.documents.max: 65");
  has(refused("", "", "{documents: {mean: 10}}"), "sequence.length: missing");
  has(refused("", "optimizer: lions"), "lion");
}

}  // namespace
}  // namespace orrery
