#include "sim/launch/spec_values.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace orrery {
namespace {

SpecValues sample_values() {
  SpecValues v;
  v.set("strategy.tensor", "8", Said::stated, "x:1 tp");
  v.set("software", "torchtitan", Said::assumed, "nearest");
  v.set("software.compile", "true", Said::stated, "x:2");
  v.set("model.layers", "4", Said::stated, "x:3");
  v.set("strategy.recompute", "[mlp, norm]", Said::stated, "x:4");
  v.set("strategy.global_batch", "", Said::missing, "not stated");
  return v;
}

TEST(SpecValues, YamlHasASourceOnEveryLine) {
  EXPECT_EQ(spec_yaml(sample_values(), {"head"}),
            "# head\n"
            "model:\n"
            "  layers: 4                         # x:3\n"
            "software:\n"
            "  profile: torchtitan               # nearest\n"
            "  compile: true                     # x:2\n"
            "strategy:\n"
            "  tensor: 8                         # x:1 tp\n"
            "  recompute: [mlp, norm]            # x:4\n"
            "  global_batch: null                # not stated\n");
}

TEST(SpecValues, JsonHasTypes) {
  EXPECT_EQ(nlohmann::json::parse(spec_json(sample_values())),
            nlohmann::json::parse(R"({"model": {"layers": 4}, "software": {"profile": "torchtitan", "compile": true},
              "strategy": {"tensor": 8, "recompute": ["mlp", "norm"], "global_batch": null}})"));
}

TEST(SpecValues, AKeyStandsOnce) {
  SpecValues v = sample_values();
  v.fill("strategy.tensor", "2", Said::derived, "");
  EXPECT_EQ(v.number("strategy.tensor"), 8);
  v.set("strategy.tensor", "2", Said::derived, "");
  EXPECT_EQ(v.number("strategy.tensor"), 2);
  EXPECT_EQ(v.take("strategy.tensor").value, "2");
  EXPECT_EQ(v.find("strategy.tensor"), nullptr);
  EXPECT_EQ(v.number("software"), std::nullopt);
}

TEST(SpecValues, OddTextsStayOneValue) {
  SpecValues v;
  v.set("model.name", "a: b # c\n", Said::stated, "x");
  EXPECT_EQ(spec_yaml(v, {}).substr(0, 29), "model:\n  name: \"a: b # c\\n\"  ");
}

}  // namespace
}  // namespace orrery
