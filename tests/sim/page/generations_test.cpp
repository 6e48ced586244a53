#include "sim/page/generations.h"

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

const char* const kText =
    "{model: llama-3.1-8b, cluster: {node: dgx-h100, nodes: 1}, gpus: 1, generate: {input: 64, output: 8, batch: 4}}";

TEST(GenerationsPage, ComparesTimesAndValuesOfSpecs) {
  const Spec spec = parse_spec(kText, "");
  const GenerationReport report = predict_batch(spec, profile_for(spec, ""));
  const std::vector<ComparedGeneration> rows = {{"a&b", {"a&b"}, 4, 1, &report, {}},
                                                {"no", {"no"}, 4, 1, nullptr, "tensor: 3 does not divide 32"}};
  const Table table = compared_table(rows, {"spec"});
  const std::string page = compared_generations_page(
      {rows, table},
      {{"a&b", nullptr, {}, {{"generate.batch", "4", "spec"}}}, {"no", nullptr, {}, {{"generate.batch", "8", "spec"}}}},
      "orrery compare", "");
  EXPECT_TRUE(is_closed(page));
  for (const char* words : {"Most tokens a second of those that fit: a&amp;b", "id=\"0.report.ttft_s\"",
                            "id=\"0.report.tpot_s\"", "prompts, to the first token", "weights", "<td>impossible</td>",
                            "<p>no: tensor: 3 does not divide 32</p>", "generate.batch"})
    EXPECT_TRUE(has(page, words)) << words;
  EXPECT_FALSE(has(page, "id=\"1.report"));
}

TEST(GenerationsPage, ShowsTheBestLayoutOrThatThereIsNone) {
  const SpecText text{"spec.yaml", kText};
  const Spec spec = parse_spec(kText, "");
  const GenerationReport report = predict_batch(spec, profile_for(spec, ""));
  const std::vector<ComparedGeneration> rows = {{"generate.batch=4", {"1"}, 4, 1, &report, {}}}, none;
  const Table table = compared_table(rows, {"tensor"}), empty = compared_table(none, {"tensor"});
  const SpecNotes notes{text, {}, {}, "", ""};
  const std::string page = found_generations_page({rows, table}, spec, {"5 predicted"}, notes);
  EXPECT_TRUE(is_closed(page));
  for (const char* words : {"id=\"results.0.report.ttft_s\"", "The best: generate.batch=4", "5 predicted",
                            "<h2>The best layouts</h2>", "The best layout for llama-3.1-8b"})
    EXPECT_TRUE(has(page, words)) << words;
  const std::string nothing = found_generations_page({none, empty}, spec, {}, notes);
  EXPECT_TRUE(is_closed(nothing));
  EXPECT_TRUE(has(nothing, "No layout fits in memory."));
}

}  // namespace
}  // namespace orrery
