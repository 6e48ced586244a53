#include "sim/page/generate.h"

#include "models/load/load_spec.h"
#include "sim/generate/generated_steps.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(GenerationPage, HasTimesPassesLinksAndMemory) {
  const SpecText text{"spec.yaml",
                      "{model: llama-3.1-8b, cluster: {node: dgx-h100, nodes: 1}, gpus: 2, strategy: {tensor: 2}, "
                      "generate: {input: 256, output: 64, batch: 4}}"};
  const Spec spec = parse_spec(text.text, text.path);
  const GenerationReport report = predict_generation(spec, profile_for(spec, ""));
  const Prediction passes = predict_passes(spec, profile_for(spec, ""), {{256, 0}, {1, 256}});
  const SpecNotes notes{text, {}, {}, "", "orrery test"};
  const std::string page = generation_page(spec, report, passes, "there are more", notes);
  EXPECT_TRUE(is_closed(page));
  for (const char* words : {"first token", "id=\"tpot_s\"", "keys and values", "decode, last",
                            "generates 4 x 64 tokens from prompts of 256", "<h2>The machine</h2>",
                            "<h2>The first passes over time</h2>", "there are more", "load of the fullest links"})
    EXPECT_TRUE(has(page, words)) << words;
  const std::string explained = explained_generation_page(spec, report, {{"Why & how", {"so"}, {}, {}}}, notes);
  EXPECT_TRUE(is_closed(explained));
  for (const char* words : {"Explained: llama-3.1-8b", "id=\"ttft_s\"", "<h2>Why &amp; how</h2>", "keys and values"})
    EXPECT_TRUE(has(explained, words)) << words;
}

}  // namespace
}  // namespace orrery
