#include "viz/predicted/phases.h"

#include <gtest/gtest.h>

#include "models/load/load_spec.h"
#include "sim/generate/generate.h"
#include "viz/timeline/bands.h"

using namespace orrery;

namespace {

StepTimeline phased(const std::string& text) { return timeline_of(predict_step(parse_spec(text, "phases.yaml"))); }

std::vector<Band> bands_of_first(const Timeline& t) { return bands_of(t, t.tracks[t.processes[0].tracks[0]]); }

}  // namespace

// The passes over the prompts and those of one token follow each other, and the cache fills up to what is planned.
TEST(Phases, AreThePassesOfAGeneratedText) {
  const StepTimeline s = phased(
      "{model: llama-3.1-8b, workload: generate, generate: {batch: 4, input: 512, output: 4, chunk: 256}, cluster: "
      "{node: dgx-h100, nodes: 1}, software: vllm, strategy: {tensor: 2, pipeline: 2, data: 2}}");
  const Timeline& t = s.timeline;
  EXPECT_EQ(t.phases, (std::vector<std::string>{"prefill", "decode"}));
  const std::vector<Band> bands = bands_of_first(t);
  ASSERT_EQ(bands.size(), 5u);
  EXPECT_EQ(name_of(t, bands[0]), "prefill 0 to 255");
  EXPECT_EQ(name_of(t, bands[1]), "prefill 256 to 511");
  EXPECT_EQ(name_of(t, bands[4]), "decode 3");
  for (std::uint32_t p = 0; p < t.processes.size(); ++p) {
    const Counter& cache = t.processes[p].counters.back();
    ASSERT_EQ(cache.name, kCacheCounter);
    EXPECT_TRUE(std::is_sorted(cache.values.begin(), cache.values.end()));
    // 515 of 516 tokens are in blocks of 16, and so are all 516
    EXPECT_EQ(cache.values.back(),
              static_cast<double>(kept_for_generation(s.step->spec, s.step->prediction.plan, p).cache));
  }
}

// The teacher's ops are those of its layers: the student's have as many events, twice with their backward.
TEST(Phases, AreTheTwoModelsOfADistillation) {
  const StepTimeline s = phased(
      "{model: gpt2, workload: distill, teacher: gpt2, distill: {divergence: 1}, sequence: 1024, cluster: {node: "
      "dgx-a100, nodes: 1}, software: megatron-core, strategy: {tensor: 2, data: 4, global_batch: 8}}");
  const Timeline& t = s.timeline;
  EXPECT_EQ(t.phases, (std::vector<std::string>{"student", "teacher"}));
  EventId forward[2] = {0, 0};
  for (EventId e = 0; e < t.events(); ++e) {
    const Label& label = t.labels[t.label[e]];
    if (label.kind == Kind::wait) continue;
    ASSERT_NE(label.phase, kNoPhase);
    if (label.name == "qkv" && label.kind == Kind::forward) ++forward[label.phase];
    EXPECT_EQ(detail_named(details_of(t, e), "model"), t.phases[static_cast<std::size_t>(label.phase)]);
    if (label.phase == 1) {
      EXPECT_NE(label.kind, Kind::backward);
    }
  }
  EXPECT_EQ(forward[0], 24u);  // twelve layers, two micro-batches
  EXPECT_EQ(forward[1], 24u);
  EXPECT_EQ(bands_of_first(t).size(), 4u);  // teacher and student, for each micro-batch
}
