#include <gtest/gtest.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "models/load/load_spec.h"
#include "sim/generate/generate.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec text_spec(std::string_view model, std::string_view generate, std::string_view strategy, std::int64_t gpus = 4,
               std::string_view software = "vllm") {
  return parse_spec(fmt::format("{{model: {}, workload: generate, generate: {}, cluster: {{node: dgx-h100, nodes: 2}}, "
                                "gpus: {}, software: {}, strategy: {}}}",
                                model, generate, gpus, software, strategy),
                    "t.yaml");
}

GenerationReport text_report(const Spec& spec) { return predict_generation(spec, profile_for(spec, "")); }

TEST(GenerationText, JsonHasTheFigures) {
  const Spec spec = text_spec("llama-3.1-8b", "{batch: 8, input: 512, output: 64, chunk: 256}", "{tensor: 4}");
  const GenerationReport report = text_report(spec);
  const nlohmann::json root = nlohmann::json::parse(to_json(spec, report));
  EXPECT_EQ(root.at("schema"), "orrery.generation/1");
  EXPECT_EQ(root.at("prefill").size(), 2U);
  EXPECT_EQ(root.at("decode").size(), 3U);
  EXPECT_DOUBLE_EQ(root.at("tpot_s"), report.token_s);
  EXPECT_EQ(root.at("memory").at("cache_bytes"), 8 * root.at("memory").at("cache_bytes_per_sequence").get<Bytes>());
  const std::string text = generation_text(spec, report, {});
  for (const char* part : {"first token", "each further token", "largest batch", "prefill, last", "decode, middle"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(GenerationText, SaysByHowMuchItFits) {
  constexpr Bytes kGiB = Bytes{1} << 30;
  GeneratedMemory memory{.capacity = 80 * kGiB, .allowed = 72 * kGiB, .weights = 40 * kGiB, .cache = 20 * kGiB};
  EXPECT_EQ(fit_text(memory), "fits: 12.00 GiB to spare of 72.00 GiB, 90 % of 80.00 GiB");
  memory.cache = 33 * kGiB;
  EXPECT_EQ(fit_text(memory), "DOES NOT FIT: 1.00 GiB more than 72.00 GiB, 90 % of 80.00 GiB");
  memory.allowed = memory.capacity;
  EXPECT_EQ(fit_text(memory), "fits: 7.00 GiB to spare of 80.00 GiB");
}

}  // namespace
}  // namespace orrery
