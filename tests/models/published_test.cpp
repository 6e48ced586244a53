// Every spec of the published-measurement files must be readable and obey the rules. A sample is in tests/data; all of
// them are read from the folder that ORRERY_PUBLISHED names.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"

namespace orrery {
namespace {

int read_all(const std::filesystem::path& path) {
  std::ifstream file(path);
  const nlohmann::json rows = nlohmann::json::parse(file);
  for (const nlohmann::json& row : rows) {
    const std::string id = row["id"].get<std::string>();
    try {
      const Spec spec = parse_spec(row["spec"].dump(), id);
      EXPECT_EQ(spec.strategy.gpus(), spec.gpus) << id;
      EXPECT_EQ(spec.strategy.micro_batches() * spec.strategy.micro_batch * spec.strategy.data,
                spec.strategy.global_batch);
    } catch (const std::exception& e) {
      ADD_FAILURE() << path.filename() << " " << e.what();
    }
  }
  return static_cast<int>(rows.size());
}

TEST(Published, SampleIsReadable) { EXPECT_GE(read_all(ORRERY_SOURCE_DIR "/tests/data/published_sample.json"), 40); }

TEST(Published, AllAreReadable) {
  const char* folder = std::getenv("ORRERY_PUBLISHED");
  if (folder == nullptr) GTEST_SKIP() << "ORRERY_PUBLISHED names no folder";
  int rows = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".json") rows += read_all(entry.path());
  }
  EXPECT_GT(rows, 0);
}

}  // namespace
}  // namespace orrery
