#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "sim/cli/commands.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

using Json = nlohmann::json;

constexpr const char* kScript =
    "torchrun --nproc_per_node 8 t.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 1000 "
    "--seq-length 128 "
    "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 8 --bf16 --manual-gc\n";

Json import_json(const std::string& file, const std::string& on = "") {
  Common common;
  common.json = true;
  return Json::parse(import_launch_command({{file}, on, ""}, common).text);
}

TEST(ImportLaunchCommand, JsonHasTheSpecAndWhatIsNotInIt) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/x.sh") << kScript;
  const Json out = import_json(folder.path() + "/x.sh");
  EXPECT_EQ(out["spec"]["strategy"]["tensor"], 2);
  EXPECT_EQ(out["spec"]["gpus"], 8);
  EXPECT_EQ(out["missing"], Json::array({"cluster.node"}));
  EXPECT_TRUE(out["spec"]["cluster"]["node"].is_null());
  ASSERT_EQ(out["not_translated"].size(), 1U);
  EXPECT_EQ(out["not_translated"][0]["option"], "manual_gc");
  EXPECT_TRUE(out["assumed"].contains("model.gated"));
  // GPT of 4 layers: 12 h^2 + 13 h a layer, tokens and positions h each, last norm 2 h.
  EXPECT_EQ(out["parameters"], 4 * (12 * 512 * 512 + 13 * 512) + (1000 + 128) * 512 + 2 * 512);
}

TEST(ImportLaunchCommand, TheSpecIsReadAgain) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/x.sh") << kScript;
  const std::string spec = folder.path() + "/spec.yaml";
  const Outcome outcome = import_launch_command({{folder.path() + "/x.sh"}, "dgx-h100", spec}, {});
  EXPECT_NE(outcome.text.find("not translated: "), std::string::npos);
  EXPECT_EQ(load_spec(spec).strategy.data, 4);
  EXPECT_EQ(import_json(folder.path() + "/x.sh", "dgx-h100")["remarks"], Json::array());
}

TEST(ImportLaunchCommand, AConfigIsNamedFromTheSpecsFolder) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() + "/config.json")
      << R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 100, "tie_word_embeddings": false})";
  // 2 (4 h^2 + 3 h f + 2 h) + 2 V h + h.
  EXPECT_EQ(import_json(folder.path())["parameters"], 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 2 * 100 * 64 + 64);
  const std::string spec = folder.path() + "/spec.yaml";
  import_launch_command({{folder.path()}, "dgx-h100", spec}, {});
  EXPECT_EQ(load_spec(spec, {"sequence=128", "strategy.micro_batch=1", "strategy.global_batch=8"}).model.layers, 2);
}

TEST(ImportLaunchCommand, RefusesWhatItDoesNotKnow) {
  EXPECT_THROW(import_json("no such file"), Error);
  EXPECT_THROW(import_launch_command({{"run --num-layers 4"}, "2xdgx-h1000", ""}, {}), Error);
}

}  // namespace
}  // namespace orrery
