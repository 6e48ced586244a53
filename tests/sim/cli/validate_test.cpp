// `orrery validate` and `orrery calibrate` around a stand-in for orrery-rank (fake_rank.cpp), whose times are made up.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "models/base/error.h"
#include "models/load/load_spec.h"
#include "models/planner/make_plan.h"
#include "sim/cli/commands.h"
#include "tests/sim/cpu_profile.h"

namespace orrery {
namespace {

namespace fs = std::filesystem;

const std::string kValidateSpec = ORRERY_SOURCE_DIR "/examples/cpu-small.yaml";

class CommandValidate : public testing::Test {
 protected:
  void SetUp() override {
    if (::access("/usr/bin/mpirun", X_OK) != 0) GTEST_SKIP() << "no mpirun";
    folder_ = "/tmp/v" + std::to_string(::getpid());
    fs::create_directory(folder_);
    ::setenv("ORRERY_RANK", ORRERY_FAKE_RANK, 1);
    ::unsetenv("FAKE_FAULT");
    std::ofstream(profile()) << to_json(cpu_profile(make_plan(load_spec(kValidateSpec))));
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string profile() const { return folder_ + "/machine.json"; }
  static Common common() {
    return {.json = true, .progress = [](std::string_view) {}};
  }
  ValidateOptions options() const { return {.specs = {kValidateSpec}, .profile = profile(), .steps = 3}; }

  std::string folder_;
};

// The fake program's durations are unrelated to the profile's: the predicted step is out of tolerance, the engine's is
// not.
TEST_F(CommandValidate, ExitsWithFourWhereAStepIsOutOfTolerance) {
  ValidateOptions strict = options(), lenient = options();
  strict.tolerance = 1e-6;
  strict.out = folder_ + "/raw";
  lenient.tolerance = 1e6;
  const Outcome off = validate_command(strict, common());
  EXPECT_EQ(off.status, kOutOfTolerance);
  EXPECT_EQ(validate_command(lenient, common()).status, 0);
  const auto spec = nlohmann::json::parse(off.text).at("specs")[0];
  EXPECT_LT(std::abs(spec.at("engine_error").get<double>()), 0.02);
  EXPECT_EQ(spec.at("measured").at("source"), "measured");
  EXPECT_TRUE(fs::exists(strict.out + "/validation.json"));
  EXPECT_TRUE(fs::exists(strict.out + "/cpu-small/rank_3.run"));
}

// One rank on a GPU: the program is started without mpirun.
TEST_F(CommandValidate, GpuRanksAreStartedByTheirOwnProgram) {
  const std::string spec = folder_ + "/gpu.yaml";
  std::ofstream(spec) << "model: {name: tiny, layers: 2, hidden: 64, heads: 4, feed_forward: 96, vocab: 256}\n"
                         "sequence: 64\ncluster: {node: dgx-h100, nodes: 1}\ngpus: 1\nsoftware: orrery\n"
                         "strategy: {global_batch: 2}\n";
  ValidateOptions gpu = {.specs = {spec}, .device = "cuda", .steps = 3, .tolerance = 1e9};
  gpu.out = folder_ + "/raw";
  auto result = nlohmann::json::parse(validate_command(gpu, common()).text).at("specs")[0];
  EXPECT_GT(result.at("measured").at("mfu").get<double>(), 0);
  gpu.composed = true;
  result = nlohmann::json::parse(validate_command(gpu, common()).text).at("specs")[0];
  EXPECT_EQ(result.at("source"), "composed");
  EXPECT_EQ(result.at("report").at("source"), "composed");
  EXPECT_EQ(result.at("ranks").size(), 1U);
  EXPECT_TRUE(fs::exists(gpu.out + "/composed.json"));
}

// The fourth rank fails, which only one of the specs has.
TEST_F(CommandValidate, ASpecThatFailsIsARow) {
  const std::string pair = folder_ + "/pair.yaml";
  std::ifstream in(kValidateSpec);
  std::string text(std::istreambuf_iterator<char>(in), {});
  text.replace(text.find("gpus: 4"), 7, "gpus: 2").replace(text.find("pipeline: 2"), 11, "pipeline: 1");
  std::ofstream(pair) << text;
  ::setenv("FAKE_FAULT", "3 0 0 fail", 1);
  ValidateOptions several = options();
  several.specs = {kValidateSpec, folder_ + "/nowhere.yaml", pair};
  several.tolerance = 1e9;
  several.out = folder_ + "/raw";
  const Outcome outcome = validate_command(several, common());
  const auto specs = nlohmann::json::parse(outcome.text).at("specs");
  ASSERT_EQ(specs.size(), 3U);
  EXPECT_EQ(specs[0].at("name"), "cpu-small");
  EXPECT_EQ(specs[0].at("error"), "rank 3: device: out of memory");
  EXPECT_EQ(specs[1].at("name"), "nowhere");
  ASSERT_FALSE(specs[2].contains("error")) << specs[2];
  EXPECT_GT(specs[2].at("measured").at("step_time_s").get<double>(), 0);
  EXPECT_EQ(outcome.status, 1);  // exit status of the first spec that failed
  std::ifstream file(several.out + "/validation.json");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), outcome.text);
  Common people = common();
  people.json = false;
  const std::string table = validate_command(several, people).text;
  EXPECT_NE(table.find("  cpu-small failed: rank 3: device: out of memory\n"), std::string::npos) << table;
  several.specs = {kValidateSpec};
  EXPECT_THROW(validate_command(several, common()), Error);  // alone it is the command's failure
}

TEST_F(CommandValidate, OnlyGpuRanksTakeTurns) {
  ValidateOptions wrong = options();
  wrong.composed = true;
  try {
    validate_command(wrong, common());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(std::string(e.what()), "--composed: ranks take turns on a GPU; add --device cuda");
    EXPECT_EQ(e.exit_code, 2);
  }
}

}  // namespace
}  // namespace orrery
