#include "sim/report/interval.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/data.h"
#include "models/load/load_spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

Spec clustered(const std::string& software, const std::string& node, int nodes) {
  return parse_spec(
      "model: {layers: 2, hidden: 1024, heads: 16, feed_forward: 4096, vocab: 32000}\nsequence: 1024\n"
      "cluster: {node: " +
          node + ", nodes: " + std::to_string(nodes) + "}\nsoftware: " + software + "\n",
      "spec");
}

TEST(Interval, BuiltInClassesAreSane) {
  const auto file = nlohmann::json::parse(data_file("intervals.json"));
  EXPECT_FALSE(file.at("classes").empty());
  for (const nlohmann::json& c : file.at("classes")) {
    EXPECT_LE(c.at("low").get<double>(), 1) << c.dump();
    EXPECT_GE(c.at("high").get<double>(), 1) << c.dump();
    EXPECT_GT(c.at("low").get<double>(), 0.2) << c.dump();
    EXPECT_LT(c.at("high").get<double>(), 5) << c.dump();
  }
}

// No published step of AMD's GPUs made a constant better, so that their interval is wider than that of any kind of GPU
// with measured steps.
TEST(Interval, GpusWithoutStepsHaveTheWidest) {
  const Interval amd = interval_of(clustered("rocm-megatron", "amd-mi300x", 1));
  const auto file = nlohmann::json::parse(data_file("intervals.json"));
  for (const nlohmann::json& c : file.at("classes")) {
    if (c.at("software") != "") continue;
    EXPECT_GT(amd.high / amd.low, c.at("high").get<double>() / c.at("low").get<double>()) << c.dump();
  }
}

TEST(Interval, ReportsCarryIt) {
  for (const char* software : {"nanotron", "orrery"}) {
    const Spec spec = clustered(software, "dgx-h100", 1);
    const Report r = predict(spec).report;
    const Interval i = interval_of(spec);
    EXPECT_LT(i.low, i.high) << software;
    EXPECT_NEAR(r.step_time_low_s, r.step_time_s * i.low, 1e-12);
    EXPECT_NEAR(r.step_time_high_s, r.step_time_s * i.high, 1e-12);
  }
}

}  // namespace
}  // namespace orrery
