#include "viz/predicted/first_step.h"

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/engine/simulate.h"
#include "viz/draw/area.h"

using namespace orrery;

TEST(FirstStep, OfGeneratedTextThereIsNone) {
  const auto step = predict_step(parse_spec(
      "{model: gpt2, cluster: {node: dgx-a100, nodes: 1}, gpus: 1, generate: {input: 16, output: 2, batch: 1}}", ""));
  try {
    first_and_steady(*step);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()).find("generated text has no first step"), 0U) << e.what();
  }
}

// The optimizer's moments appear at the end of the first step, so that its memory is less until then.
TEST(FirstStep, HasItsOwnMemoryAndTheSameTasks) {
  const auto step = predict_step(parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: megatron-core, strategy: {data: 8, "
      "global_batch: 16}}",
      "first.yaml"));
  const auto [first, steady] = first_and_steady(*step);
  EXPECT_EQ(first.timeline.title, "first step");
  EXPECT_EQ(first.timeline.events(), steady.timeline.events());
  EXPECT_EQ(first.timeline.end, step->prediction.trace.step_time);
  EXPECT_LE(steady.timeline.end, first.timeline.end);
  const auto bytes_at = [](const StepTimeline& s, Picoseconds time) {
    const Counter* const memory = memory_of(s.timeline.processes[0]);
    return memory_peak(*memory, time, time + 1).bytes;
  };
  const Picoseconds middle = steady.timeline.end / 2;
  EXPECT_LT(bytes_at(first, middle), bytes_at(steady, middle));
  for (const Picoseconds time : memory_of(first.timeline.processes[0])->times) EXPECT_LE(time, first.timeline.end);
}

TEST(FirstStep, StopsWhenItIsNoLongerWanted) {
  const auto step = predict_step(parse_spec(
      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: megatron-core, strategy: {data: 8, "
      "micro_batch: 1, global_batch: 256}}",
      "first.yaml"));
  const std::atomic<bool> stop = true;
  EXPECT_THROW(first_and_steady(*step, &stop), Stopped);
}
