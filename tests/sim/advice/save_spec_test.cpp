#include "sim/advice/save_spec.h"

#include <gtest/gtest.h>

#include "models/base/input_file.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

TEST(SaveSpec, WritesWhatIsReadAgain) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path("best.yaml");
  const SpecText spec = {"small.yaml", "model: gpt3-175b\nsequence: 2048\ncluster: {node: dgx-a100, nodes: 8}\n"};
  save_spec(path, {"the best", "of two"}, spec, {"strategy.tensor=8", "strategy.recompute=[mlp, norm]"});
  const std::string text = read_input(path, kMostSettings);
  EXPECT_EQ(text.substr(0, 20), "# the best\n# of two\n");
  const Spec read = load_spec(path);
  EXPECT_EQ(read.strategy.tensor, 8);
  EXPECT_TRUE(read.strategy.recompute.mlp && read.strategy.recompute.norm);
  EXPECT_EQ(read.gpus, 64);
}

}  // namespace
}  // namespace orrery
