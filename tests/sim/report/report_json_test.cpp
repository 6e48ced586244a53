#include "sim/report/report.h"

#include <fstream>
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/load/load_spec.h"
#include "models/spec/spec.h"
#include "sim/predict/predict.h"

namespace orrery {
namespace {

using nlohmann::json;

const json& report() {
  static const json parsed = json::parse(to_json(
      predict(parse_spec(
                  "model: llama-3.2-1b\nsequence: 2048\ncluster: {node: dgx-h100, nodes: 2}\n"
                  "strategy: {tensor: 2, pipeline: 2, data: 4, global_batch: 32, recompute: full, sharding: zero1}\n",
                  "test.yaml"))
          .report));
  return parsed;
}

// Scripts rely on these names to the letter (schema orrery.report/2).
TEST(ReportJson, HasEveryKeyOfTheSchema) {
  const json& r = report();
  EXPECT_EQ(r.at("schema"), "orrery.report/2");
  for (const char* key : {"source", "plan_hash", "software_version", "profile_hash", "step_time_s", "step_time_low_s",
                          "step_time_high_s", "tokens_per_s", "tokens_per_s_per_gpu", "model_tflops_per_gpu",
                          "hardware_tflops_per_gpu", "mfu", "hfu", "bubble_fraction"}) {
    EXPECT_TRUE(r.contains(key)) << key;
  }
  for (const char* key :
       {"compute", "recompute", "exposed_tensor", "exposed_context", "exposed_expert", "exposed_pipeline",
        "exposed_data", "offload", "optimizer", "bubble", "imbalance", "launch", "other"}) {
    EXPECT_TRUE(r.at("time_s").contains(key)) << key;
  }
  for (const char* key : {"capacity_bytes", "usable_bytes", "fits", "first_step_peak_bytes", "peak_bytes",
                          "peak_reserved_bytes", "peak_device_bytes", "host_peak_bytes", "nvme_peak_bytes", "ranks"}) {
    EXPECT_TRUE(r.at("memory").contains(key)) << key;
  }
  for (const char* key : {"group", "op", "link", "algorithm", "count", "bytes_per_gpu", "time_s", "exposed_s"}) {
    EXPECT_TRUE(r.at("communication").at(0).contains(key)) << key;
  }
  EXPECT_TRUE(r.at("cost").at("usd").is_null());
  for (const char* key : {"tasks", "ranks_simulated", "ranks", "wall_s"}) EXPECT_TRUE(r.at("simulation").contains(key));
}

// The keys of a value, with those inside it: "time_s.compute", "memory.ranks[].name".
void collect_keys(const json& value, const std::string& at, std::set<std::string>& keys) {
  if (value.is_object()) {
    for (const auto& [key, inside] : value.items()) collect_keys(inside, at.empty() ? key : at + "." + key, keys);
  } else if (value.is_array() && !value.empty() && value[0].is_object()) {
    for (const json& item : value) collect_keys(item, at + "[]", keys);
  } else {
    keys.insert(at);
  }
}

// The first cells of the rows of docs/reference.md's table of report keys: `a`, `b`.
std::set<std::string> keys_of_page() {
  std::ifstream page(std::string(ORRERY_SOURCE_DIR) + "/docs/reference.md");
  std::set<std::string> keys;
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) inside = line == "## Keys of a report";
    if (!inside || !line.starts_with("| `")) continue;
    const std::string cell = line.substr(0, line.find(" |"));
    for (std::size_t tick = cell.find('`'); tick != std::string::npos;) {
      const std::size_t end = cell.find('`', tick + 1);
      keys.insert(cell.substr(tick + 1, end - tick - 1));
      tick = cell.find('`', end + 1);
    }
  }
  return keys;
}

TEST(ReportJson, ThePageHasEveryKey) {
  Report r;
  r.memory.ranks.emplace_back();
  r.memory.stalled.emplace_back();
  r.communication.emplace_back();
  r.links.emplace_back();
  r.weights.emplace_back();
  r.losses = {1};
  r.models.emplace_back().gpus = 8;
  r.roll_back_s = 1;
  r.variation = r.hashes = StepQuantiles{1, 2};
  std::set<std::string> keys;
  collect_keys(json::parse(to_json(r)), "", keys);
  EXPECT_EQ(keys_of_page(), keys);
}

TEST(ReportJson, PartsSumToTheWhole) {
  const json& r = report();
  double time = 0;
  for (const auto& [key, value] : r.at("time_s").items()) time += value.get<double>();
  EXPECT_NEAR(time / r.at("step_time_s").get<double>(), 1, 1e-6);
  std::int64_t ranks = 0;
  for (const json& rank : r.at("memory").at("ranks")) {
    std::int64_t sum = 0;
    for (const auto& [category, bytes] : rank.at("at_peak").items()) sum += bytes.get<std::int64_t>();
    EXPECT_EQ(sum, rank.at("peak_bytes").get<std::int64_t>());
    ranks += rank.at("ranks").get<std::int64_t>();
  }
  EXPECT_EQ(ranks, 16);
}

}  // namespace
}  // namespace orrery
