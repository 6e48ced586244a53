#include "sim/page/simulate.h"

#include "models/load/load_spec.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

std::string page_of(const std::vector<std::string>& overrides, const StepAdvice& advice = {}) {
  const SpecText text{"spec.yaml",
                      "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, software: megatron-core, "
                      "strategy: {tensor: 2, pipeline: 2, global_batch: 16}}"};
  const Spec spec = parse_spec(text.text, text.path, overrides);
  return simulate_page(spec, predict(spec), advice, {text, overrides, {}, "orrery simulate spec.yaml", "orrery test"});
}

TEST(SimulatePage, HasEveryPart) {
  const std::string page = page_of({}, {{"without it: 3 % faster"}, {"twice the NIC speed"}, 5, {}, {"price of it"}});
  EXPECT_TRUE(is_closed(page));
  for (const char* title : {"Summary", "Where the time goes", "Timeline", "Memory", "The machine",
                            "What was decided by default", "The spec"})
    EXPECT_TRUE(has(page, std::string("<h2>") + title + "</h2>")) << title;
  for (const char* words : {"gpt2 on 8 x NVIDIA A100", "without it: 3 % faster", "twice the NIC speed", "price of it",
                            "parameters", "CUDA context and NCCL", "The largest buffers then", "orrery test"})
    EXPECT_TRUE(has(page, words)) << words;
  EXPECT_EQ(count(page, "<svg"), 4);  // parts of the step, load of links, timeline, memory
}

TEST(SimulatePage, SaysWhenNothingHelpsAndWhatWouldFit) {
  const Table fitting{{{"change", "", Align::left}}, {{"--set strategy.sharding=zero3"}}};
  const std::string page = page_of({"model=llama-3.1-70b"}, {{}, {}, 7, fitting, {}});
  EXPECT_TRUE(has(page, "class=\"alarm\"><b>DOES NOT FIT"));
  EXPECT_TRUE(has(page, "None of 7 single changes"));
  EXPECT_TRUE(has(page, "--set strategy.sharding=zero3"));
}

TEST(SimulatePage, TheSameSpecGivesTheSameBytes) { EXPECT_EQ(page_of({}), page_of({})); }

TEST(SimulatePage, HasAColumnForEachModel) {
  const std::string page = page_of({"teacher=gpt2-medium"});
  EXPECT_TRUE(has(page, "beside a frozen teacher (gpt2-medium)"));
  for (const char* model : {">student<small>", ">teacher<small>"}) EXPECT_TRUE(has(page, model)) << model;
}

}  // namespace
}  // namespace orrery
