#include "sim/generate/largest_batch.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/load/open_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec batch_spec(const std::string& strategy) {
  return parse_spec(fmt::format("{{model: llama-3.1-8b, workload: generate, generate: {{batch: 8, input: 256, output: "
                                "32}}, cluster: {{node: dgx-h100, nodes: 1}}, gpus: 4, software: vllm, strategy: {}}}",
                                strategy),
                    "t.yaml");
}

TEST(LargestBatch, GrowsWithMemory) {
  const Spec spec = batch_spec("{tensor: 2, data: 2}");
  const Profile profile = profile_for(spec, "");
  std::int64_t before = -1;
  for (const Bytes GiB : {4, 20, 40, 60, 79}) {
    const std::int64_t batch = largest_batch(spec, profile, GiB << 30);
    EXPECT_GE(batch, before) << GiB;
    EXPECT_EQ(batch % 2, 0) << GiB;
    before = batch;
  }
  EXPECT_EQ(largest_batch(spec, profile, Bytes{4} << 30), 0) << "the weights alone take more";
  EXPECT_GT(before, 1000);
}

// With a stated micro-batch only the cache grows with the batch.
TEST(LargestBatch, IsAMultipleOfAStatedMicroBatch) {
  const Spec spec = batch_spec("{tensor: 2, data: 2, micro_batch: 4}");
  const std::int64_t batch = largest_batch(spec, profile_for(spec, ""), Bytes{70} << 30);
  EXPECT_GT(batch, 1000);
  EXPECT_EQ(batch % 8, 0);
}

// Batches between multiples of the stages were not tried, and none below as many as there are stages.
TEST(LargestBatch, IsAnyMultipleOfTheDataRanks) {
  const Spec spec = batch_spec("{pipeline: 4, data: 1}");
  const Profile profile = profile_for(spec, "");
  for (const std::int64_t batch : {3, 6}) {
    Spec of = spec;
    set_batch(of, batch);
    EXPECT_EQ(largest_batch(spec, profile, generation_memory(of, profile).sum()), batch);
  }
}

}  // namespace
}  // namespace orrery
