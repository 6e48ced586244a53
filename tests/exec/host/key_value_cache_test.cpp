#include "exec/host/key_value_cache.h"

#include <set>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "models/generation/generation_plan.h"
#include "models/layers/blocks.h"
#include "models/load/load_spec.h"

namespace orrery {
namespace {

struct CacheJob {
  explicit CacheJob(const std::string& generate, const std::string& model = "")
      : spec(parse_spec(fmt::format("{{model: {{layers: 3, hidden: 32, heads: 4, kv_heads: 2, feed_forward: 48, vocab: "
                                    "64{}}}, workload: generate, generate: {{{}}}, cluster: {{node: dgx-h100, nodes: "
                                    "1}}, gpus: 1, software: vllm, strategy: {{precision: fp32}}}}",
                                    model, generate),
                        "t.yaml")),
        plan(make_executed_plan(spec)),
        rank(spec, plan, 0) {}

  const Frame& frame_of_layer(std::int32_t layer) const {
    for (const Frame& f : rank.plan.frames) {
      if (f.layer == layer && rank.plan.blocks[f.block].role == BlockRole::layer) return f;
    }
    throw Error("no such layer");
  }
  Bytes bytes() const {
    for (const Frame& f : rank.plan.frames) {
      const Block& block = rank.plan.blocks[f.block];
      if (block.role == BlockRole::state) return block.buffers[kKeysValues].bytes;
    }
    return 0;
  }

  const Spec spec;
  const Plan plan;
  const Rank rank;
};

// Every token has bytes of its own, inside the buffer.
TEST(KeyValueCache, TokensLieApart) {
  const CacheJob job("batch: 3, input: 9, output: 6, kv_block: 4");
  KeyValueCache cache(job.rank);
  const Bytes row = 2 * 2 * 8 * 4;  // keys and values of two heads of eight elements
  for (std::int64_t end = 1; end <= 15; ++end) {
    for (std::int64_t sequence = 0; sequence < 3; ++sequence) {
      for (std::int32_t layer = 0; layer < 3; ++layer) cache.store(job.frame_of_layer(layer), sequence, end - 1, end);
    }
  }
  std::set<Bytes> places;
  for (std::int64_t sequence = 0; sequence < 3; ++sequence) {
    for (std::int32_t layer = 0; layer < 3; ++layer) {
      std::int64_t next = 0;
      for (const CachedRun& run : cache.runs(job.frame_of_layer(layer), sequence, 0, 15)) {
        EXPECT_EQ(run.first, next);
        next += run.count;
        for (std::int64_t i = 0; i < run.count; ++i) EXPECT_TRUE(places.insert(run.at + i * row).second);
      }
      EXPECT_EQ(next, 15);
    }
  }
  EXPECT_GE(*places.begin(), 0);
  EXPECT_LE(*places.rbegin() + row, job.bytes());
  EXPECT_EQ(job.bytes(), 3 * 3 * 16 * row);
  EXPECT_EQ(cache.blocks(), 3 * 3 * 4);
  cache.clear();
  EXPECT_EQ(cache.blocks(), 0);
}

// Waste is less than a block a sequence and layer.
TEST(KeyValueCache, BlocksAreTakenWhenTheyAreNeeded) {
  const CacheJob job("batch: 2, input: 9, output: 6, kv_block: 4");
  KeyValueCache cache(job.rank);
  const Frame& frame = job.frame_of_layer(0);
  for (std::int64_t end = 1; end <= 15; ++end) {
    cache.store(frame, 0, end - 1, end);
    EXPECT_EQ(cache.blocks(), (end + 3) / 4);
  }
}

// With a window the blocks of tokens that no query can see any more serve later tokens.
TEST(KeyValueCache, AWindowGivesBlocksBack) {
  for (const std::int64_t chunk : {1, 3, 7, 40}) {
    const CacheJob job("batch: 1, input: 60, output: 40, kv_block: 4", ", sliding_window: {window: 10, every: 1}");
    KeyValueCache cache(job.rank);
    const Frame& frame = job.frame_of_layer(0);
    for (std::int64_t begin = 0; begin < 100; begin += chunk) {
      const std::int64_t end = std::min<std::int64_t>(100, begin + chunk);
      for (const CachedRun& run : cache.runs(frame, 0, std::max<std::int64_t>(0, begin - 9), begin))
        EXPECT_LT(run.first, begin);
      cache.store(frame, 0, begin, end);
      EXPECT_LE(cache.blocks(), 4);
    }
  }
}

}  // namespace
}  // namespace orrery
