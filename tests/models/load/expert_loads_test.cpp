#include "models/load/expert_loads.h"

#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

// Layers 1 and 3 of four have experts.
Model with_loads(const std::string& path) {
  Model m;
  m.layers = 4;
  m.moe = Moe{.experts = 4, .first_layer = 1, .every = 2};
  m.moe->loads_file = path;
  return m;
}

TEST(ExpertLoads, ARowForEachExpertLayerOrOneForAll) {
  const test::TemporaryFolder folder;
  const Model m = with_loads(folder.path("loads.json"));
  const auto read = [&](const char* text) {
    std::ofstream(m.moe->loads_file) << text;
    return read_expert_loads(m);
  };
  EXPECT_EQ(read("[[1, 1, 1, 1]]").size(), 1U);
  EXPECT_EQ(read("[[1, 1, 1, 1], [3, 1, 0, 0]]")[1], (std::vector<double>{3, 1, 0, 0}));
  for (const char* text :
       {"[]", "[[1, 1, 1]]", "[[1, 1, 1, 1], [0, 0, 0, 0]]", "[[1, 1, 1, 1], [1, 1]]", "{}", "[[1, 1, 1, -1]]"}) {
    EXPECT_THROW(read(text), Error) << text;
  }
}

// A file with a layer count of billions is refused quickly: no loop runs over all layers before.
TEST(ExpertLoads, DoNotCountLayersOneByOne) {
  const test::TemporaryFolder folder;
  Model m = with_loads(folder.path("loads.json"));
  m.layers = std::int64_t{1} << 60;
  std::ofstream(m.moe->loads_file) << "[[1, 1, 1, 1], [1, 1, 1, 1]]";
  EXPECT_THROW(read_expert_loads(m), Error);
}

}  // namespace
}  // namespace orrery
