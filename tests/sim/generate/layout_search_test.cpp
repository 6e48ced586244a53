#include "sim/generate/layout_search.h"

#include <algorithm>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/base/error.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

SpecText node_spec(const std::string& model, const std::string& generate) {
  return {"t.yaml", "model: " + model + "\nworkload: generate\ngenerate: " + generate +
                        "\ncluster: {node: dgx-h100, nodes: 1}\ngpus: 4\nsoftware: vllm\n"};
}

// No layout that was tried by hand is better than the best.
TEST(LayoutSearch, NoLayoutIsBetter) {
  const SpecText text = node_spec("llama-3.1-8b", "{batch: 16, input: 512, output: 64}");
  for (const GenerationObjective objective :
       {GenerationObjective::throughput, GenerationObjective::first_token, GenerationObjective::each_token}) {
    LayoutSearchOptions options;
    options.objective = objective;
    options.threads = 2;
    const LayoutsFound found = search_layouts(text, options);
    ASSERT_FALSE(found.found.empty());
    EXPECT_EQ(found.predicted, 6);  // (1, 2, 4) tensor ranks times stages, of four GPUs
    const GenerationReport& best = found.found.front().report;
    for (const std::string tensor : {"1", "2", "4"}) {
      const Spec spec = parse_spec(text.text, text.path, {"strategy.tensor=" + tensor});
      const GenerationReport other = predict_generation(spec, profile_for(spec, ""));
      const auto figure = [&](const GenerationReport& r) {
        return objective == GenerationObjective::throughput    ? -r.tokens_per_s
               : objective == GenerationObjective::first_token ? r.first_token_s
                                                               : r.token_s;
      };
      EXPECT_LE(figure(best), figure(other));
    }
  }
}

TEST(LayoutSearch, StatedValuesStayAndBatchesGrowToTheMemory) {
  const SpecText text = node_spec("llama-3.1-8b", "{input: 2048, output: 64}");
  LayoutSearchOptions options;
  options.overrides = {"strategy.tensor=2", "strategy.pipeline=1"};
  const LayoutsFound found = search_layouts(text, options);
  ASSERT_FALSE(found.found.empty());
  std::int64_t most = 0;
  for (const FoundLayout& f : found.found) {
    EXPECT_EQ(f.layout.tensor, 2);
    EXPECT_EQ(f.layout.data, 2);
    most = std::max(most, f.layout.batch);
  }
  EXPECT_GT(most, 100);
  EXPECT_TRUE(
      std::any_of(found.found.begin(), found.found.end(), [](const FoundLayout& f) { return f.layout.batch == 2; }));
}

// The last batch tried is the most that fits, also into less memory, and nothing larger fits.
TEST(LayoutSearch, TheLastBatchFillsTheMemoryThatMayBeUsed) {
  const SpecText text = node_spec("mixtral-8x7b", "{input: 512, output: 64}");
  LayoutSearchOptions options;
  options.overrides = {"strategy.tensor=4", "strategy.pipeline=1", "strategy.expert=1"};
  std::int64_t before = 0;
  for (const Bytes memory : {Bytes{60} << 30, Bytes{65} << 30, Bytes{0}}) {
    options.max_memory = memory;
    const LayoutsFound found = search_layouts(text, options);
    EXPECT_FALSE(found.batches_stated);
    std::int64_t largest = 0;
    for (const FoundLayout& f : found.found) largest = std::max(largest, f.layout.batch);
    EXPECT_GT(largest, before);
    before = largest;
    const Spec next =
        parse_spec(text.text, text.path,
                   {"strategy.tensor=4", "strategy.expert=1", fmt::format("generate.batch={}", largest + 1)});
    const GeneratedMemory m = generation_memory(next, profile_for(next, ""));
    EXPECT_GT(m.sum(), memory > 0 ? memory : m.allowed);
  }
}

// The search also tries the largest batch that fills all stages of a pipeline, since the largest that fits need not.
TEST(LayoutSearch, TriesTheLargestBatchThatFillsThePipeline) {
  const SpecText text = node_spec("mixtral-8x7b", "{input: 512, output: 64}");
  LayoutSearchOptions options;
  options.overrides = {"strategy.tensor=1", "strategy.pipeline=4", "strategy.expert=1"};
  for (const Bytes memory : {Bytes{40} << 30, Bytes{41} << 30, Bytes{42} << 30}) {
    options.max_memory = memory;
    const LayoutsFound found = search_layouts(text, options);
    std::int64_t largest = 0;
    for (const FoundLayout& f : found.found) largest = std::max(largest, f.layout.batch);
    ASSERT_GT(largest, 4);
    EXPECT_TRUE(std::ranges::any_of(found.found, [&](const FoundLayout& f) {
      return f.layout.batch == largest / 4 * 4;
    })) << largest;
  }
}

TEST(LayoutSearch, RefusesTheTimeOfTokensThatAreNotThere) {
  LayoutSearchOptions options;
  options.objective = GenerationObjective::each_token;
  EXPECT_THROW(search_layouts(node_spec("llama-3.1-8b", "{batch: 8, input: 64, output: 1}"), options), Error);
}

TEST(LayoutSearch, ResultsDoNotDependOnThreads) {
  const SpecText text = node_spec("mixtral-8x7b", "{batch: 8, input: 256, output: 8}");
  LayoutSearchOptions options;
  const LayoutsFound one = search_layouts(text, options);
  options.threads = 4;
  const LayoutsFound four = search_layouts(text, options);
  ASSERT_EQ(one.found.size(), four.found.size());
  for (std::size_t i = 0; i < one.found.size(); ++i)
    EXPECT_EQ(one.found[i].layout.settings, four.found[i].layout.settings);
}

}  // namespace
}  // namespace orrery
