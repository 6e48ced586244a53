#include "sim/calibrate/own_shapes.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "models/load/load_spec.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

class OwnShapes : public testing::Test {
 protected:
  CalibrationSpec shapes(const std::string& model, const std::string& strategy, std::int64_t gpus,
                         const std::string& device = "cpu") {
    const std::string path = folder_.path() + "/step.yaml";
    std::ofstream(path) << "model: {hidden: 256, heads: 4, vocab: 1000, " + model +
                               "}\nsequence: 128\ngpus: " + std::to_string(gpus) +
                               "\ncluster: {node: localhost}\nstrategy: {" + strategy + "}\n";
    CalibrationSpec spec = own_shapes(path, device);
    shrunk_ = load_spec(path, spec.overrides);
    return spec;
  }

  test::TemporaryFolder folder_;
  Spec shrunk_;
};

TEST_F(OwnShapes, AreThoseOfOneLayerAndOfGradientsThatAreAddedUp) {
  const CalibrationSpec spec =
      shapes("layers: 24, feed_forward: 1024", "micro_batch: 2, global_batch: 64, precision: fp32", 1);
  EXPECT_EQ(spec.name, "step");
  EXPECT_FALSE(spec.composed);
  EXPECT_EQ(shrunk_.model.layers, 1);
  EXPECT_EQ(shrunk_.strategy.global_batch, 4);
}

TEST_F(OwnShapes, AreThoseOfEveryStage) {
  const CalibrationSpec spec =
      shapes("layers: 16, feed_forward: 1024",
             "pipeline: 4, data: 2, micro_batch: 1, global_batch: 32, precision: fp32", 8, "cuda");
  EXPECT_TRUE(spec.composed);
  EXPECT_EQ(shrunk_.model.layers, 4);
  EXPECT_EQ(shrunk_.strategy.global_batch, 4);
}

TEST_F(OwnShapes, AreThoseOfDenseLayersBeforeExpertsToo) {
  shapes("layers: 12, feed_forward: 1024, moe: {experts: 4, top_k: 2, feed_forward: 512, first_layer: 3}",
         "micro_batch: 1, global_batch: 8, precision: fp32", 1);
  EXPECT_EQ(shrunk_.model.layers, 4);
}

}  // namespace
}  // namespace orrery
