#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "sim/published/predict.h"

namespace orrery {
namespace {

using Names = std::vector<std::string>;

std::string published_spec(const std::string& strategy) {
  return "{model: mixtral-8x7b, sequence: 4096, cluster: {node: dgx-h100, nodes: 8}, strategy: {" + strategy + "}}";
}

TEST(PublishedSummary, TellsWhatAStepUses) {
  EXPECT_EQ(
      techniques_in(
          parse_spec(published_spec("tensor: 2, pipeline: 2, context: 2, data: 8, expert: 4, expert_tensor: 1, "
                                    "sharding: zero1, recompute: full, global_batch: 16"),
                     "five")),
      (Names{"zero1", "tensor and sequence", "context, ring", "pipeline, 1f1b", "recompute, full", "experts",
             "expert parallelism", "3D: data, tensor, pipeline", "5D: with context and expert", "precision, bf16"}));
  EXPECT_EQ(techniques_in(parse_spec(published_spec("data: 64"), "replicas")),
            (Names{"DDP", "experts", "precision, bf16"}));
}

TEST(PublishedSummary, CountsARowForEverythingItUses) {
  PublishedCase one, two;
  one.row.source = "here";
  one.techniques = {"DDP", "experts"};
  two.row.source = "there";
  two.techniques = {"DDP"};
  const std::vector<ErrorSummary> sums = summarize_by_technique({{&one, 0.1, 0}, {&two, -0.3, 0}});
  ASSERT_EQ(sums.size(), 2U);
  EXPECT_EQ(sums[0].source, "DDP");
  EXPECT_EQ(sums[0].rows, 2U);
  EXPECT_EQ(sums[0].sources, 2U);
  EXPECT_NEAR(sums[0].mean, 0.2, 1e-12);
  EXPECT_NEAR(sums[0].bias, -0.1, 1e-12);
  EXPECT_EQ(sums[1].rows, 1U);
  EXPECT_NEAR(sums[1].mean, 0.1, 1e-12);
}

}  // namespace
}  // namespace orrery
