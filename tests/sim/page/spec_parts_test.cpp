#include "sim/page/spec_parts.h"

#include "tests/sim/page/markup.h"

namespace orrery {
namespace {

Spec tiny_spec() {
  return parse_spec("{model: gpt2, sequence: 1024, cluster: {node: dgx-a100, nodes: 1}, strategy: {global_batch: 16}}",
                    "spec.yaml");
}

TEST(SpecParts, TheSpecIsShownAsItWasWritten) {
  const std::string part =
      spec_part(tiny_spec(), {{"a<b>.yaml", "model: x # <script>\r\n\ty"}, {"strategy.tensor=2"}, {}, "", ""});
  EXPECT_TRUE(is_closed(part));
  EXPECT_TRUE(has(part, "<summary>a&lt;b&gt;.yaml</summary>"));
  EXPECT_TRUE(has(part, "<pre>model: x # &lt;script&gt;\n\ty</pre>"));
  EXPECT_TRUE(has(part, "--set strategy.tensor=2"));
  EXPECT_TRUE(has(part, "strategy.global_batch"));
}

TEST(SpecParts, AnEndlessSpecIsCutAtALetter) {
  std::string text(59'999, 'a');
  for (int i = 0; i < 100'000; ++i) text += "é";
  const std::string part = spec_part(tiny_spec(), {{"long.yaml", text}, {}, {}, "", ""});
  EXPECT_LT(part.size(), 120'000U);
  EXPECT_FALSE(has(part, "\xef\xbf\xbd"));
  EXPECT_TRUE(has(part, "The first 60,000 of 259,999 bytes."));
}

TEST(SpecParts, WhatWasChosenComesBeforeDefaults) {
  const std::string part = defaults_part(tiny_spec(), {{}, {}, {"sequence 1024: the model's own"}, "", ""});
  EXPECT_TRUE(is_closed(part));
  EXPECT_LT(part.find("sequence 1024: the model&#39;s own"), part.find("strategy.micro_batch"));
  EXPECT_TRUE(has(machine_part(tiny_spec(), {"rent: 1 $"}), "rent: 1 $"));
}

}  // namespace
}  // namespace orrery
