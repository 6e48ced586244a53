#include "sim/advice/first_answer.h"

#include <fstream>

#include <gtest/gtest.h>

#include "models/base/data.h"
#include "models/base/error.h"
#include "sim/predict/long_steps.h"
#include "sim/predict/predict.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

Report report_of(const FirstAnswer& answer) {
  const Spec spec = parse_spec(answer.spec.text, answer.spec.path);
  return predict_report(spec, profile_for(spec, ""));
}

TEST(FirstAnswer, FitsAndSaysWhatItChose) {
  for (const char* model : {"llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b"}) {
    const FirstAnswer answer = first_answer(model, "2xdgx-h100", {}, 1, nullptr);
    EXPECT_TRUE(report_of(answer).memory.fits) << model;
    ASSERT_EQ(answer.chosen.size(), 3U);
    EXPECT_EQ(answer.chosen[0].find("sequence 8192"), 0U) << answer.chosen[0];
    EXPECT_NE(answer.chosen[1].find("global_batch 512"), std::string::npos) << answer.chosen[1];
  }
}

TEST(FirstAnswer, ReadsAFolderAndLeavesGivenValuesAlone) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/config.json") << data_file("models/qwen3-8b.json");
  EXPECT_TRUE(names_a_model(folder.path()));
  const FirstAnswer answer =
      first_answer(folder.path(), "dgx-h100", {"sequence=2048", "strategy.tensor=4"}, 1, nullptr);
  const Spec spec = parse_spec(answer.spec.text, answer.spec.path);
  EXPECT_EQ(spec.sequence, 2048);
  EXPECT_EQ(spec.strategy.tensor, 4);
  EXPECT_EQ(spec.gpus, 8);
}

TEST(FirstAnswer, RefusesUnknownMachinesAndModelsThatCannotFit) {
  const auto message = [](const char* model, const char* on) -> std::string {
    try {
      first_answer(model, on, {"strategy.offload=none"}, 1, nullptr);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("llama-3.1-8b", "2xdgx-h10").find("did you mean dgx-h100"), std::string::npos);
  EXPECT_NE(message("llama-3.1-8b", "0xdgx-h100").find("nodes are not between 1 and"), std::string::npos);
}

// Such a spec was refused by the search of strategies of training.
TEST(FirstAnswer, FindsALayoutThatGeneratesText) {
  const FirstAnswer answer =
      first_answer("llama-3.1-8b", "dgx-h100", {"workload=generate", "generate.input=128"}, 1, nullptr);
  const Spec spec = parse_spec(answer.spec.text, answer.spec.path);
  ASSERT_TRUE(spec.generation);
  EXPECT_EQ(spec.generation->input, 128);
  EXPECT_EQ(spec.gpus, 8);
  ASSERT_EQ(answer.chosen.size(), 1U);
  EXPECT_NE(answer.chosen[0].find("the most tokens a second"), std::string::npos) << answer.chosen[0];
}

}  // namespace
}  // namespace orrery
