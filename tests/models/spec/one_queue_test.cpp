#include "models/spec/one_queue.h"

#include <gtest/gtest.h>

#include "models/spec/sharding.h"

namespace orrery {
namespace {

TEST(OneQueue, IsTheStacksHabitOnOlderGpus) {
  Spec spec;
  spec.strategy.tensor = 8;
  spec.cluster.gpu.compute_capability = 90;
  EXPECT_FALSE(has_one_queue(spec));
  spec.software.communication.one_queue = OneQueue::before_blackwell;
  EXPECT_TRUE(has_one_queue(spec));
  spec.cluster.gpu.compute_capability = 100;
  EXPECT_FALSE(has_one_queue(spec));
  spec.software.communication.one_queue = OneQueue::always;
  EXPECT_TRUE(has_one_queue(spec));
}

TEST(OneQueue, NotUnderFullyShardedParameters) {
  Spec spec;
  spec.software.communication.one_queue = OneQueue::always;
  spec.strategy.sharding = find_sharding("fsdp");
  EXPECT_FALSE(has_one_queue(spec));
  spec.strategy.sharding = find_sharding("zero1");
  EXPECT_TRUE(has_one_queue(spec));
  spec.strategy.overlap.micro_batches = true;
  EXPECT_FALSE(has_one_queue(spec));
}

}  // namespace
}  // namespace orrery
