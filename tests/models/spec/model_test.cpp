#include "models/spec/model.h"

#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/families/hugging_face.h"
#include "models/spec/spec.h"

namespace orrery {
namespace {

nlohmann::json published() {
  std::ifstream file(ORRERY_SOURCE_DIR "/tests/data/published_params.json");
  return nlohmann::json::parse(file);
}

// Weights that one token touches: a router picks top_k of the experts.
std::int64_t active_parameters(const Model& m) {
  std::int64_t idle = 0;
  for (std::int64_t layer = 0; layer < m.layers; ++layer) {
    for (const Parameter& p : layer_parameters(m, layer)) {
      if (p.experts > 0) idle += elements(p) / p.experts * (p.experts - m.moe->top_k);
    }
  }
  return parameter_count(m, 0) - idle;
}

TEST(Model, CountsThePublishedParameters) {
  const nlohmann::json expected = published();
  int with_published = 0;
  for (std::string_view name : data_names("models")) {
    ASSERT_TRUE(expected.contains(name)) << name;
    const nlohmann::json& row = expected[std::string(name)];
    const std::int64_t count = parameter_count(find_model(name), 0);
    EXPECT_EQ(count, row["computed"].get<std::int64_t>()) << name;
    if (row["published"].is_null()) continue;
    EXPECT_EQ(count, row["published"].get<std::int64_t>()) << name;
    ++with_published;
  }
  EXPECT_EQ(data_names("models").size(), 53u);
  EXPECT_GE(with_published, 38);
}

TEST(Model, CountsTheActiveParameters) {
  const nlohmann::json expected = published();
  for (const auto& [name, row] : expected.items()) {
    if (!row.contains("active")) continue;
    EXPECT_EQ(active_parameters(find_model(name)), row["active"].get<std::int64_t>()) << name;
  }
}

}  // namespace
}  // namespace orrery
