#include "models/load/load_spec.h"
#include "sim/page/simulate.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(GenerationPage, HasTimesPassesAndMemory) {
  const SpecText text{"spec.yaml",
                      "{model: llama-3.1-8b, cluster: {node: dgx-h100, nodes: 1}, gpus: 2, strategy: {tensor: 2}, "
                      "generate: {input: 256, output: 64, batch: 4}}"};
  const Spec spec = parse_spec(text.text, text.path);
  const GenerationReport report = predict_generation(spec, profile_for(spec, ""));
  const std::string page = generation_page(spec, report, {text, {}, {}, "", "orrery test"});
  EXPECT_TRUE(is_closed(page));
  for (const char* words : {"first token", "id=\"tpot_s\"", "keys and values", "decode, last",
                            "generates 4 x 64 tokens from prompts of 256", "<h2>The machine</h2>"})
    EXPECT_TRUE(has(page, words)) << words;
}

}  // namespace
}  // namespace orrery
