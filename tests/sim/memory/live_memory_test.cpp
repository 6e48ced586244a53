#include "sim/memory/live_memory.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Bytes sum(const MemorySample& s) { return std::accumulate(s.bytes.begin(), s.bytes.end(), Bytes{0}); }

Prediction small_model(const std::string& strategy) {
  const std::string text =
      "model: {name: t, layers: 4, hidden: 256, heads: 4, feed_forward: 1024, vocab: 1024}\n"
      "sequence: 128\ncluster: {node: dgx-h100, nodes: 1}\nstrategy: " +
      strategy + "\n";
  return predict(parse_spec(text, "test.yaml"));
}

// Everything taken is given back: a slot ends a step as it began it, never below the state it keeps, and its highest
// sample is what the memory replay allocates, less rounding and workspace.
TEST(LiveMemory, ReturnsToTheStateAndPeaksWithTheReplay) {
  for (const char* strategy :
       {"{data: 1, global_batch: 2}", "{tensor: 2, pipeline: 2, data: 2, global_batch: 8}", "{data: 8, sharding: fsdp}",
        "{data: 4, pipeline: 2, sharding: zero1, global_batch: 16}"}) {
    const Prediction p = small_model(strategy);
    const std::vector<MemorySample> samples = live_memory(p.plan, p.trace);
    for (std::uint32_t s = 0; s < p.plan.classes.size(); ++s) {
      std::vector<MemorySample> own;
      for (const MemorySample& sample : samples) {
        if (sample.slot == s) own.push_back(sample);
      }
      ASSERT_GT(own.size(), 2U) << strategy;
      EXPECT_EQ(own.front().bytes, own.back().bytes) << strategy;
      Bytes peak = 0;
      for (std::size_t i = 0; i < own.size(); ++i) {
        EXPECT_GE(sum(own[i]), sum(own.front()));
        if (i > 1) {
          EXPECT_LT(own[i - 1].time, own[i].time);
        }
        peak = std::max(peak, sum(own[i]));
      }
      const Bytes replayed = p.report.memory.ranks[s].memory.peak;
      EXPECT_NEAR(static_cast<double>(peak), static_cast<double>(replayed), 0.05 * static_cast<double>(replayed) + 40e6)
          << strategy;
    }
  }
}

// A buffer is held until the task that uses it last has ended: the level falls only when a task ends, and rises only
// when one begins. Kernels of this model are shorter than their launches, so that nothing else ends when one begins.
TEST(LiveMemory, FallsOnlyWhenATaskEnds) {
  for (const char* strategy : {"{data: 1, global_batch: 2}", "{tensor: 2, pipeline: 2, data: 2, global_batch: 8}"}) {
    const Prediction p = small_model(strategy);
    const std::vector<MemorySample> samples = live_memory(p.plan, p.trace);
    std::set<std::pair<std::uint32_t, Picoseconds>> begin, end;
    for (TaskId t = 0; t < p.plan.task_count(); ++t) {
      begin.insert({p.plan.slot_of(t), p.trace.spans[t].entered});
      end.insert({p.plan.slot_of(t), p.trace.spans[t].ended});
    }
    std::size_t falls = 0;
    for (std::size_t i = 1; i < samples.size(); ++i) {
      const MemorySample &before = samples[i - 1], &after = samples[i];
      if (before.slot != after.slot || sum(before) == sum(after)) continue;
      const bool fell = sum(after) < sum(before);
      falls += fell ? 1U : 0U;
      EXPECT_TRUE((fell ? end : begin).contains({after.slot, after.time})) << strategy << " at " << after.time;
    }
    EXPECT_GT(falls, 20U) << strategy;
  }
}

}  // namespace
}  // namespace orrery
