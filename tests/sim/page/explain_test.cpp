#include "sim/page/explain.h"

#include "models/load/load_spec.h"
#include "sim/predict/predict.h"
#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

TEST(ExplainPage, HasAPartForEverySection) {
  const SpecText text{
      "spec.yaml", "{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, strategy: {global_batch: 16}}"};
  const Spec spec = parse_spec(text.text, text.path);
  const std::vector<Section> sections = {
      {"Formulas & more", {"2Ψ + 12Ψ/N"}, {}, {}}, {"empty", {}, {}, {}}, {"Routes", {}, {{{"way"}}, {{"a - b"}}}, {}}};
  const std::string page = explain_page(spec, predict(spec).report, sections, {text, {}, {}, "", ""});
  EXPECT_TRUE(is_closed(page));
  EXPECT_TRUE(has(page, "<h2>Formulas &amp; more</h2>\n<p>2Ψ + 12Ψ/N</p>"));
  EXPECT_TRUE(has(page, "<h2>Routes</h2>"));
  EXPECT_FALSE(has(page, "<h2>empty</h2>"));
  EXPECT_TRUE(has(page, "Explained: gpt2 on 8 x NVIDIA A100"));
}

}  // namespace
}  // namespace orrery
