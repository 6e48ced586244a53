// `orrery calibrate --device cuda` around a stand-in for orrery-rank-cuda, some of whose runs fail.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "models/base/error.h"
#include "models/cost/profile.h"
#include "sim/calibrate/calibration.h"
#include "sim/cli/commands.h"
#include "tests/sim/jobs_script.h"
#include "tests/temporary_folder.h"

namespace orrery {
namespace {

constexpr char kBench[] =
    R"({"fingerprint": {"device": "NVIDIA H100"}, )"
    R"("measured": {"ops": [{"kind": "gemm/output", "samples": [{"sizes": [1, 2, 3], "amount": 12, "us": 7, )"
    R"("spread": 0, "count": 12}]}], "transfers": [], "issue_us": 0, "gap_us": 0, "transfer_start_us": 0, )"
    R"("wake_us": 0, "step_us": 0, "compute_slowdown": 1, "transfer_slowdown": 1}})";

class CommandCalibrate : public testing::Test {
 protected:
  // fails: text in a spec whose run fails. slower: MHz by which the GPU's clock falls from each run to the next.
  void program(const std::string& fails, double slower = 0) {
    const std::string path = folder_.path() + "/program";
    std::ofstream(path) << test::kJobsScript << "case $1 in\n"
                        << "  --bench) echo '" << kBench << "' > $2.part; mv $2.part $2; exit ;;\n"
                        << "esac\n"
                           "if grep -q '"
                        << fails << "' \"$2\"; then export FAKE_FAULT='0 0 0 fail'; fi\n"
                        << "[[ -e " << kernels() << " ]] || exit 9\n"
                        << "echo >> " << folder_.path() << "/runs\n"
                        << "export FAKE_MHZ=$(($(wc -l < " << folder_.path() << "/runs) * -" << slower << " + 1755))\n"
                        << "exec " << ORRERY_FAKE_RANK << " \"$@\"\n";
    ::chmod(path.c_str(), S_IRWXU);
    ::setenv("ORRERY_RANK", path.c_str(), 1);
  }
  void TearDown() override { ::unsetenv("ORRERY_RANK"); }

  std::string out() const { return folder_.path() + "/gpu.json"; }
  std::string kernels() const { return folder_.path() + "/gpu.kernels.json"; }
  Outcome calibrate() const {
    return calibrate_command({.out = out(), .device = "cuda", .quick = true, .noise = 1e9},
                             {.progress = [](std::string_view) {}});
  }

  test::TemporaryFolder folder_;
};

// The file of single kernels is written before the first run begins: the stand-in would not run without it.
TEST_F(CommandCalibrate, ASpecThatFailsIsLeftOut) {
  program("hidden: 2560");
  const Outcome outcome = calibrate();
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find("failed: llama: hidden 2560, 8192 tokens: rank 0: device: out of memory\n"),
            std::string::npos)
      << outcome.text;
  const Profile profile = load_profile(out());
  EXPECT_GT(profile.measured.ops.size(), 5U);
  EXPECT_NE(fingerprint_of(profile, "specs"), "");
}

TEST_F(CommandCalibrate, AllThatIsWellIsNotRemarkedOn) {
  program("nothing of the kind");
  const Outcome outcome = calibrate();
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.text.find("failed"), std::string::npos);
  EXPECT_EQ(fingerprint_of(load_profile(out()), "specs"), "");
}

std::vector<std::string> runs_of(const Profile& profile) {
  std::vector<std::string> names;
  for (const Conditions& c : profile.conditions) names.push_back(c.during);
  return names;
}

// Each run's clocks are in the profile; the first spec is run once more, as the last.
TEST_F(CommandCalibrate, NotesTheClocksOfEachRun) {
  program("nothing of the kind", 0);
  const Outcome outcome = calibrate();
  const Profile profile = load_profile(out());
  const std::vector<std::string> names = runs_of(profile);
  ASSERT_EQ(names.size(), gpu_calibration_specs(true).size() + 1);
  EXPECT_EQ(names.front(), names.back());
  EXPECT_EQ(profile.conditions.front().sm_MHz, 1755);
  EXPECT_EQ(fingerprint_of(profile, "drift"), "");
  EXPECT_NE(outcome.text.find("+0.0 % from the first run of a spec to the last"), std::string::npos) << outcome.text;
}

// If the clock has fallen by then, all specs are measured again in reverse order.
TEST_F(CommandCalibrate, BalancesADriftOfTheClocks) {
  program("nothing of the kind", 9);
  const Outcome outcome = calibrate();
  const Profile profile = load_profile(out());
  const std::vector<std::string> names = runs_of(profile);
  const std::size_t specs = gpu_calibration_specs(true).size();
  ASSERT_EQ(names.size(), 2 * specs + 1);
  EXPECT_EQ(names[specs], names[0]);
  for (std::size_t i = 0; i < specs; ++i) EXPECT_EQ(names[i], names[names.size() - 1 - i]);
  EXPECT_NE(fingerprint_of(profile, "drift"), "");
  EXPECT_NE(outcome.text.find("all measured again in reverse order"), std::string::npos) << outcome.text;
}

TEST_F(CommandCalibrate, EndsWhereNothingCanBeMeasured) {
  program("calibration");
  EXPECT_THROW(calibrate(), Error);
  EXPECT_EQ(::access(kernels().c_str(), R_OK), 0);
  EXPECT_NE(::access(out().c_str(), R_OK), 0);
}

}  // namespace
}  // namespace orrery
